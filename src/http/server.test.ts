import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { freePort } from "../../test/servers/free-port.ts";
import { isRelayError, RelayError } from "../core/errors.ts";
import { healthOf, readinessOf } from "./health.ts";
import { FACTS } from "./health-fixture.test.ts";
import { type HttpFaces, type HttpServer, startHttpServer } from "./server.ts";

let http: HttpServer;
let port: number;
let database = { answers: true, reason: null as string | null };
let adminToken: string | null = null;
const faces: HttpFaces = {
  health: async () => healthOf({ ...FACTS, database }),
  readiness: async () => readinessOf(database, FACTS),
  metrics: async () => {
    if (!database.answers) throw new Error("broken on purpose: canary");
    return { contentType: "application/openmetrics-text", text: "# EOF\n" };
  },
  operations: () => {
    throw new RelayError("DATABASE_UNREACHABLE", "connecting failed with canary");
  },
  adminToken: () => adminToken,
  redact: (text) => text.replaceAll("canary", "***"),
};
const place = () => ({ host: "127.0.0.1", port, service: "<shop> & relay", version: "1.2.3" });

const mounted: string[] = [];
before(async () => {
  port = await freePort();
  http = await startHttpServer(faces, place(), (server) => {
    server.addHook("onRoute", ({ method, url }) => {
      if (method !== "HEAD") mounted.push(`${String(method)} ${url.replaceAll(/:(\w+)/g, "{$1}")}`);
    });
    server.get("/added", async () => "guarded");
    server.get("/added/open", { config: { access: "open" } }, async () => "open");
  });
});
after(() => http.close());

async function get(path: string, init?: RequestInit) {
  const response = await fetch(`http://127.0.0.1:${port}${path}`, init);
  const body = await response.text();
  const type = response.headers.get("content-type") ?? "";
  const code = () => (JSON.parse(body) as { error: { code: string } }).error.code;
  return { status: response.status, headers: response.headers, type, body, code };
}

test("G4 health, probes and metrics answer by their names and aliases", async () => {
  database = { answers: true, reason: null };
  const paths = ["/health", "/healthz", "/livez", "/readyz", "/ready", "/metrics", "/openapi.json", "/"];
  const answers = await Promise.all(paths.map((path) => get(path)));
  assert.deepEqual(
    answers.map(({ status }) => status),
    paths.map(() => 200),
  );
  assert.deepEqual(JSON.parse((await get("/livez")).body), { status: "alive" });
  assert.deepEqual(JSON.parse((await get("/ready")).body), { status: "ready" });
  const checks = { database: "ok", loops: "ok" };
  assert.deepEqual(JSON.parse((await get("/readyz?verbose")).body), { status: "ready", checks });
  assert.match((await get("/metrics")).type, /^application\/openmetrics-text/);
});

test("G4 a database that is gone makes it unhealthy and unready, and leaves it alive", async () => {
  database = { answers: false, reason: "refused" };
  assert.deepEqual(
    [(await get("/health")).status, (await get("/readyz")).status, (await get("/livez")).status],
    [503, 503, 200],
  );
  const checks = { database: "refused", loops: "ok" };
  assert.deepEqual(JSON.parse((await get("/readyz")).body), { status: "not ready", checks });
});

test("G4 every error is JSON with a code, a message and, where there is one, a way out; secrets are taken out", async () => {
  database = { answers: false, reason: null };
  const json = { "content-type": "application/json" };
  const replay = "/api/v1/dead-letters/replay";
  const asked: [string, RequestInit, string][] = [
    ["/nothing/here", {}, "404 NOT_FOUND"],
    ["/health", { method: "POST" }, "405 METHOD_NOT_ALLOWED"],
    ["/api/v1/dead-letters/replay", { method: "PUT" }, "405 METHOD_NOT_ALLOWED"],
    ["/metrics", {}, "500 INTERNAL"],
    ["/api/v1/status", {}, "503 DATABASE_UNREACHABLE"],
    ["/api/v1/events?limit=0", {}, "400 BAD_REQUEST"],
    ["/api/v1/events?typ=order", {}, "400 BAD_REQUEST"],
    [replay, { method: "POST", headers: json, body: "{" }, "400 BAD_REQUEST"],
    [replay, { method: "POST", headers: json, body: "{}" }, "400 BAD_REQUEST"],
    [replay, { method: "POST", headers: { "content-type": "text/plain" }, body: "{}" }, "415 CONTENT_TYPE_UNSUPPORTED"],
    [replay, { method: "POST", headers: json, body: `"${"x".repeat(1_100_000)}"` }, "413 BODY_TOO_LARGE"],
  ];
  for (const [path, init, expected] of asked) {
    const answer = await get(path, init);
    assert.match(answer.type, /^application\/json/);
    assert.equal(`${answer.status} ${answer.code()}`, expected, path);
    assert.doesNotMatch(answer.body, /canary/);
  }
  const { error } = JSON.parse((await get("/api/v1/status")).body) as { error: Record<string, string> };
  assert.deepEqual(
    [error.message, error.fix?.startsWith("Check that the database runs")],
    ["connecting failed with ***", true],
  );
});

test("G4 every answer carries the headers that keep a browser from guessing, framing and keeping it", async () => {
  for (const path of ["/", "/health", "/api/v1/status", "/nothing"]) {
    const { headers } = await get(path);
    assert.equal(headers.get("x-content-type-options"), "nosniff", path);
    assert.match(headers.get("content-security-policy") ?? "", /default-src 'self'.*frame-ancestors 'none'/);
    assert.equal(headers.get("cache-control"), "no-store");
  }
});

test("G4 a token that is set guards the API and what others add, and neither health nor metrics", async () => {
  database = { answers: true, reason: null };
  adminToken = "t0ken";
  try {
    for (const path of ["/health", "/livez", "/readyz", "/metrics", "/openapi.json", "/added/open", "/"]) {
      assert.equal((await get(path)).status, 200, path);
    }
    for (const path of ["/api/v1/status", "/api/v1/events", "/added"]) {
      const answer = await get(path);
      assert.deepEqual(
        [answer.status, answer.headers.get("www-authenticate")?.startsWith("Bearer")],
        [401, true],
        path,
      );
    }
    assert.equal((await get("/added", { headers: { authorization: "Bearer t0ken" } })).body, "guarded");
  } finally {
    adminToken = null;
  }
});

test("G4 the page on / names the service and leads to what there is, unless somebody else has a page", async () => {
  const { body } = await get("/");
  assert.match(body, /&#60;shop&#62; &#38; relay/);
  for (const path of ["/health", "/metrics", "/openapi.json"]) assert.ok(body.includes(`href="${path}"`), path);
  const other = await freePort();
  const own = await startHttpServer(faces, { ...place(), port: other }, (server) => {
    server.get("/", async () => "my page");
  });
  assert.equal(await (await fetch(`http://127.0.0.1:${other}/`)).text(), "my page");
  await own.close();
});

test("G4 A21 every route of the server is in the OpenAPI document, and nothing else", async () => {
  const { paths } = JSON.parse((await get("/openapi.json")).body) as { paths: Record<string, object> };
  const documented = Object.entries(paths).flatMap(([path, operations]) =>
    Object.keys(operations).map((method) => `${method.toUpperCase()} ${path}`),
  );
  assert.ok(documented.length > 15);
  assert.deepEqual(documented.sort(), mounted.filter((it) => !it.includes("/added")).sort());
});

test("G4 a port that is taken is told by the setting's name", async () => {
  await assert.rejects(startHttpServer(faces, place()), (error) => {
    return isRelayError(error, "CONFIG_INVALID") && error.message.startsWith(`PORT ${port} on 127.0.0.1 is in use`);
  });
  await assert.rejects(startHttpServer(faces, { ...place(), host: "192.0.2.1" }), /HOST 192\.0\.2\.1 is no address/);
});
