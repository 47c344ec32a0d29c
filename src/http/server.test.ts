import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { freePort } from "../../test/servers/free-port.ts";
import { NO_ACCESS_RULES, tokenDigest } from "../config/access-config.ts";
import { isRelayError, RelayError } from "../core/errors.ts";
import { healthOf, readinessOf } from "./health/health.ts";
import { FACTS } from "./health/health-fixture.test.ts";
import { bareOverview } from "./overview.ts";
import { type HttpFaces, type HttpServer, startHttpServer } from "./server.ts";

let http: HttpServer;
let port: number;
let database = { answers: true, reason: null as string | null };
let access = NO_ACCESS_RULES;
const faces: HttpFaces = {
  health: async () => healthOf({ ...FACTS, database }),
  readiness: async () => readinessOf(database, FACTS),
  metrics: async () => {
    if (!database.answers) throw new Error("broken on purpose: canary");
    return { contentType: "application/openmetrics-text", text: "# EOF\n" };
  },
  overview: async () => bareOverview(healthOf({ ...FACTS, database })),
  series: async () => ({ intervalMs: 5_000, points: [], markers: [] }),
  logs: async () => [],
  findings: async () => [],
  settings: () => [],
  operations: () => {
    throw new RelayError("DATABASE_UNREACHABLE", "connecting failed with canary");
  },
  access: () => access,
  redact: (text) => text.replaceAll("canary", "***"),
};
const failedAt: string[] = [];
const place = () => ({
  host: "127.0.0.1",
  port,
  service: "<shop> & relay",
  version: "1.2.3",
  failed: (at: string) => failedAt.push(at),
});

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
  const code = () => (JSON.parse(body) as { code: string }).code;
  return { status: response.status, headers: response.headers, type, body, code };
}

test("G4 health, probes and metrics answer at their paths and aliases", async () => {
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

test("G4 without a database the service is unhealthy and not ready, but alive", async () => {
  database = { answers: false, reason: "refused" };
  assert.deepEqual(
    [(await get("/health")).status, (await get("/readyz")).status, (await get("/livez")).status],
    [503, 503, 200],
  );
  const checks = { database: "refused", loops: "ok" };
  assert.deepEqual(JSON.parse((await get("/readyz")).body), { status: "not ready", checks });
});

test("G4 every error is JSON with a code, a message and, if possible, a fix; secrets are redacted", async () => {
  database = { answers: false, reason: null };
  const json = { "content-type": "application/json" };
  const replay = "/api/v1/dead-letters/replay";
  const asked: [string, RequestInit, string][] = [
    ["/nothing/here", {}, "404 NOT_FOUND"],
    ["/%zz", {}, "400 BAD_REQUEST"],
    ["/health", { method: "POST" }, "405 METHOD_NOT_ALLOWED"],
    ["/api/v1/dead-letters/replay", { method: "PUT" }, "405 METHOD_NOT_ALLOWED"],
    ["/metrics", {}, "500 INTERNAL"],
    ["/api/v1/status", {}, "503 DATABASE_UNREACHABLE"],
    ["/api/v1/events?limit=0", {}, "400 BAD_REQUEST"],
    ["/api/v1/events?typ=order", {}, "400 BAD_REQUEST"],
    [replay, { method: "POST", headers: json, body: "{" }, "400 BAD_REQUEST"],
    [replay, { method: "POST", headers: json, body: "{}" }, "400 BAD_REQUEST"],
    [
      replay,
      { method: "POST", headers: json, body: `{"ids":${"[".repeat(400_000)}${"]".repeat(400_000)}}` },
      "400 BAD_REQUEST",
    ],
    [replay, { method: "POST", headers: json, body: `{"ids":[${"0,".repeat(400_000)}0]}` }, "400 BAD_REQUEST"],
    [replay, { method: "POST", headers: json, body: '{"__proto__":{"all":true}}' }, "400 BAD_REQUEST"],
    [`/api/v1/events/${"x".repeat(8_000)}`, {}, "400 BAD_REQUEST"],
    [`/api/v1/events/${"x".repeat(80_000)}`, {}, "431 HEADERS_TOO_LARGE"],
    [replay, { method: "POST", headers: { "content-type": "text/plain" }, body: "{}" }, "415 CONTENT_TYPE_UNSUPPORTED"],
    [replay, { method: "POST", headers: json, body: `"${"x".repeat(1_100_000)}"` }, "413 BODY_TOO_LARGE"],
  ];
  for (const [path, init, expected] of asked) {
    const answer = await get(path, init);
    assert.match(answer.type, /^application\/problem\+json/);
    assert.equal(`${answer.status} ${answer.code()}`, expected, path);
    assert.doesNotMatch(answer.body, /canary/);
  }
  const { fix, ...problem } = JSON.parse((await get("/api/v1/status")).body) as Record<string, string>;
  assert.match(fix ?? "", /^Check that the database runs/);
  assert.deepEqual(problem, {
    type: "urn:outbox-relay:error:DATABASE_UNREACHABLE",
    title: "Database unreachable",
    status: 503,
    detail: "connecting failed with ***",
    code: "DATABASE_UNREACHABLE",
  });
  assert.deepEqual(failedAt, ["GET /metrics"], "only our own faults are reported to the operator");
});

test("G4 strict CSP: every response has the headers against sniffing, framing and caching", async () => {
  const policy =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'";
  for (const path of ["/", "/health", "/api/v1/status", "/nothing", "/%zz"]) {
    const { headers } = await get(path);
    const of = (name: string) => headers.get(name);
    assert.equal(of("content-security-policy"), policy, path);
    assert.deepEqual(
      [of("x-content-type-options"), of("referrer-policy"), of("cross-origin-opener-policy"), of("cache-control")],
      ["nosniff", "no-referrer", "same-origin", path === "/" ? "no-cache" : "no-store"],
      path,
    );
    assert.match(of("permissions-policy") ?? "", /camera=\(\)/);
  }
});

test("G4 a configured token protects the API and added routes, but neither health nor metrics", async () => {
  database = { answers: true, reason: null };
  const admin = { name: "admin", role: "admin", maySeePayloads: true, digest: tokenDigest("t0ken") } as const;
  access = { ...NO_ACCESS_RULES, tokens: [admin] };
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
    access = NO_ACCESS_RULES;
  }
});

test("G4 the console is on /, unless the embedding application has a page there", async () => {
  const { body, type } = await get("/");
  assert.match(type, /^text\/html/);
  assert.match(body, /<html lang="en">/);
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

test("G4 the error for a port in use names the setting", async () => {
  await assert.rejects(startHttpServer(faces, place()), (error) => {
    return isRelayError(error, "CONFIG_INVALID") && error.message.startsWith(`PORT ${port} on 127.0.0.1 is in use`);
  });
  await assert.rejects(
    startHttpServer(faces, { ...place(), host: "192.0.2.1" }),
    /HOST 192\.0\.2\.1 is not an address/,
  );
});

test("G4 a stream ends when its token is revoked", async () => {
  const admin = { name: "admin", role: "admin", maySeePayloads: true, digest: tokenDigest("of old") } as const;
  access = { ...NO_ACCESS_RULES, tokens: [admin] };
  try {
    const headers = { authorization: "Bearer of old" };
    const stream = await fetch(`http://127.0.0.1:${port}/api/v1/live`, { headers });
    assert.equal(stream.status, 200);
    access = { ...NO_ACCESS_RULES, tokens: [{ ...admin, digest: tokenDigest("a new one") }] };
    assert.match(await stream.text(), /^: connected\n\nevent: overview\n/);
  } finally {
    access = NO_ACCESS_RULES;
  }
});
