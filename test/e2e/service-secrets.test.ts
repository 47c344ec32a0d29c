import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { freePort } from "../servers/free-port.ts";
import { type Receiver, startReceiver } from "../servers/receiver.ts";
import { until } from "../servers/until.ts";
import { cookiesOf, visit } from "./http-visitor.ts";
import { ORDERS } from "./outbox-tables.ts";
import { runCommand, type ServiceProcess, startService } from "./service-process.ts";
import { serverOfFile, stagesOn } from "./service-stage.ts";

/** Every secret setting has a value of its own that nothing else contains, some as an address writes them. */
const CANARIES = {
  database: "canary-database-p@ss:w/rd",
  kafka: 'canary-kafka-"quoted"\\back',
  admin: "canary-admin-token",
  viewer: "canary-viewer-token",
  operator: "canary-operator-token",
  session: "canary-session-secret",
  issuer: "canary-oidc-client-secret",
  loki: "canary-loki-password",
  otel: "canary-otel-key",
  push: "canary-push-password",
  collector: "canary-collector-password",
  path: "canary-path-of-a-webhook",
  query: "canary-query-of-a-webhook",
  header: "canary-header-value",
};

/** As they may stand somewhere: plain, in an address, in JSON, and in the headers that carry them. */
function spellings(secret: string): string[] {
  const inJson = JSON.stringify(secret).slice(1, -1);
  const asLogin = Buffer.from(`me:${secret}`).toString("base64");
  return [...new Set([secret, encodeURIComponent(secret), encodeURI(secret), inJson, asLogin])];
}

const stage = stagesOn(serverOfFile(), "secrets", [ORDERS]);
let folder: string;
before(() => {
  folder = mkdtempSync(join(tmpdir(), "secrets-"));
});
after(() => rmSync(folder, { recursive: true }));

function fileWith(name: string, content: string): string {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
}

function withLogin(address: string, user: string, password: string): string {
  const url = new URL(address);
  url.username = user;
  url.password = password;
  return url.href;
}

/** The settings of a service whose every receiver has a secret. */
async function secretive(databaseUrl: string, receiver: Receiver): Promise<Record<string, string> & { PORT: string }> {
  return {
    DATABASE_URL: withLogin(databaseUrl, new URL(databaseUrl).username, CANARIES.database),
    OUTBOX_SCHEMAS: "orders",
    PORT: String(await freePort()),
    LOG_LEVEL: "trace",
    LOG_EVENTS: "all",
    ADMIN_TOKEN_FILE: fileWith("token", `${CANARIES.admin}\n`),
    API_TOKENS_FILE: fileWith("tokens", `ann:viewer:${CANARIES.viewer}\nbob:operator+payloads:${CANARIES.operator}\n`),
    SESSION_SECRET: CANARIES.session,
    OIDC_ISSUER: receiver.url,
    OIDC_CLIENT_ID: "relay",
    OIDC_CLIENT_SECRET: CANARIES.issuer,
    OIDC_ROLES: "viewer=support",
    LOKI_HOST: receiver.url,
    LOKI_BASIC_AUTH: `me:${CANARIES.loki}`,
    ALLOY_PUSH_URL: withLogin(`${receiver.url}/api/v1/write`, "me", CANARIES.push),
    METRICS_PUSH_INTERVAL: "1s",
    OTEL_EXPORTER_OTLP_ENDPOINT: withLogin(receiver.url, "me", CANARIES.collector),
    OTEL_EXPORTER_OTLP_HEADERS: `api-key=${CANARIES.otel}`,
    OTEL_TRACES_SAMPLER_ARG: "1",
  };
}

const KAFKA = { KAFKA_USERNAME: "relay", KAFKA_PASSWORD: CANARIES.kafka, KAFKA_SSL: "false" };

/** Nothing that anybody can see holds a secret. Secrets that the test itself saw arrive where they belong are fine. */
function requireNone(what: string, text: string): void {
  for (const secret of Object.values(CANARIES).flatMap(spellings)) {
    const at = text.indexOf(secret);
    assert.equal(at, -1, `${what} shows ${secret}: ${text.slice(Math.max(0, at - 200), at + 200)}`);
  }
}

/** All that the process says: its output, its answers to everything that it documents, and what it pushed. */
async function checkAll(running: ServiceProcess, env: { readonly PORT: string }, receiver: Receiver): Promise<void> {
  const address = `http://127.0.0.1:${env.PORT}`;
  requireNone("the output", running.stdout() + running.stderr());
  const { body: document } = await visit(`${address}/openapi.json`);
  const { paths } = JSON.parse(document) as { paths: Record<string, object> };
  const addresses = Object.entries(paths).flatMap(([path, operations]) =>
    Object.keys(operations).map((method) => ({ method: method.toUpperCase(), path })),
  );
  assert.ok(addresses.length > 40);
  for (const { method, path } of [...addresses, { method: "GET", path: "/nothing" }]) {
    for (const token of [CANARIES.admin, CANARIES.operator, CANARIES.viewer, "wrong"]) {
      const url = `${address}${path.replaceAll(/\{\w+\}/g, encodeURIComponent(CANARIES.viewer.slice(7)))}`;
      const { body, headers } = await visit(url, {
        method,
        headers: { authorization: `Bearer ${token}`, cookie: "outbox_relay_session=wrong" },
        ...(method === "POST" ? { body: { token: "wrong", reason: "a test" } } : {}),
      });
      requireNone(`${method} ${path}`, `${JSON.stringify(headers)}\n${body}`);
    }
  }
  const login = await visit(`${address}/api/v1/login`, { method: "POST", body: { token: CANARIES.admin } });
  requireNone("a login", `${JSON.stringify(login.headers)}\n${decodedCookie(cookiesOf(login))}\n${login.body}`);
  const page = await visit(`${address}/`);
  for (const [, file] of page.body.matchAll(/(?:src|href)="([^"]+)"/g)) {
    requireNone(`the console's ${file}`, (await visit(`${address}/${file}`)).body);
  }
  requireNone("a push", receiver.requests.map(({ body }) => body.toString("latin1")).join("\n"));
  requireNone("the output", running.stdout() + running.stderr());
}

/** What the browser keeps can be read by whoever sits before it. */
function decodedCookie(cookie: string): string {
  return Buffer.from(cookie.split(/[=.]/)[1] ?? "", "base64url").toString();
}

const saysOften = (running: ServiceProcess, receiver: Receiver) =>
  until("everything has been told and pushed", () => {
    const paths = new Set(receiver.requests.map(({ path }) => path.replace(/^.*\/(?=\w+$)/, "")));
    return running.logs().length > 3 && paths.has("push") && paths.has("write");
  });

describe("secrets of the service", { concurrency: 2 }, () => {
  test("A20 A21: a service that works shows no secret in log, metrics, answers or pushes", async () => {
    await using it = await stage();
    await using receiver = await startReceiver();
    const env = await secretive(it.relayUrl, receiver);
    await using running = startService(["run"], { ...env, OUTBOX_DESTINATION: "stdout:" });
    await running.becomes("healthy");
    await it.sql("insert into orders.outbox (aggregate_id, event_type, payload) values ('k', 'order.placed', '{}')");
    await until("it is delivered", () => running.stdout().includes('"order.placed"'));
    await saysOften(running, receiver);
    const logins = receiver.requests.map(({ headers }) => headers.authorization ?? "");
    const basic = (login: string) => `Basic ${Buffer.from(login).toString("base64")}`;
    for (const password of [CANARIES.loki, CANARIES.push]) {
      assert.ok(logins.includes(basic(`me:${password}`)), "the secrets were really used");
    }
    await checkAll(running, env, receiver);
    running.kill("SIGTERM");
    await running.ended;
    await until("spans came", () => receiver.requests.some(({ path }) => path === "/v1/traces"));
    requireNone("the end", running.stdout() + running.stderr());
    requireNone("the last pushes", receiver.requests.map(({ body }) => body.toString("latin1")).join("\n"));
  });

  test("A20 A21: nor when brokers, database and receivers cannot be reached or refuse", async () => {
    await using it = await stage();
    await using receiver = await startReceiver();
    await using nobroker = await startReceiver();
    const env = await secretive(it.relayUrl, receiver);
    await using running = startService(["run"], {
      ...env,
      ...KAFKA,
      KAFKA_BROKERS: new URL(nobroker.url).host,
    });
    await it.sql("insert into orders.outbox (aggregate_id, event_type, payload) values ('k', 'order.placed', '{}')");
    await running.logged("the outage", ({ event }) => event === "CircuitOpened");
    await saysOften(running, receiver);
    receiver.manner = 401;
    const refusal = await running.logged("the refusal", ({ receiver: told }) => told === "remote_write");
    assert.match(String(refusal.reason), /it answered 401 .*authorization.*\[redacted\]/);
    await checkAll(running, env, receiver);

    const gone = new URL(it.relayUrl);
    gone.port = String(await freePort());
    const late = await secretive(gone.href, receiver);
    gone.searchParams.set("user", gone.username);
    gone.searchParams.set("password", CANARIES.database);
    gone.username = "";
    const { header, path, query } = CANARIES;
    await using waiting = startService(["run"], {
      ...late,
      DATABASE_URL: gone.href,
      OUTBOX_DESTINATIONS: JSON.stringify({
        hook: {
          url: `${receiver.url}/hooks/${path}?token=${query}`,
          http: { headers: { authorization: `Bearer ${header}` } },
        },
      }),
    });
    await waiting.logged("the database", ({ reason }) => /DATABASE_UNREACHABLE/.test(String(reason)));
    await checkAll(waiting, late, receiver);
  });

  test("A20: nor in what is said of settings that cannot be used", async () => {
    const wrong: Record<string, Record<string, string>> = {
      "no address": { DATABASE_URL: `me:${CANARIES.database}@localhost/x` },
      "a port that is none": { DATABASE_URL: `postgres://me:${CANARIES.admin}@localhost:99999999/x` },
      "no colon": { LOKI_HOST: "http://localhost:1", LOKI_BASIC_AUTH: CANARIES.loki },
      "no scheme": { ALLOY_PUSH_URL: `me:${CANARIES.push}@localhost/write` },
      "no pairs": { OTEL_EXPORTER_OTLP_ENDPOINT: "http://localhost:1", OTEL_EXPORTER_OTLP_HEADERS: CANARIES.otel },
      "a password without a user": {
        OUTBOX_DESTINATION: "",
        KAFKA_BROKERS: "localhost:1",
        KAFKA_PASSWORD: CANARIES.kafka,
      },
      "an unknown scheme": { OUTBOX_DESTINATION: `ftp://me:${CANARIES.push}@localhost` },
      "no role, no name, too short, no digest, half an issuer": {
        API_TOKENS: `ann:chief:${CANARIES.viewer},${CANARIES.admin},bob:viewer:canary,cleo:viewer:sha256:${CANARIES.operator}`,
        OIDC_CLIENT_SECRET: CANARIES.issuer,
      },
      twice: { ADMIN_TOKEN: CANARIES.admin, ADMIN_TOKEN_FILE: fileWith("other", CANARIES.otel) },
    };
    const good = { DATABASE_URL: "postgres://localhost/x", OUTBOX_SCHEMAS: "orders", OUTBOX_DESTINATION: "stdout:" };
    for (const [what, env] of Object.entries(wrong)) {
      const { code, stdout, stderr } = await runCommand(["run"], { ...good, PORT: String(await freePort()), ...env });
      assert.equal(code, 2, `${what}: ${stderr}`);
      assert.notEqual(stderr, "", what);
      requireNone(what, stdout + stderr);
    }
  });
});
