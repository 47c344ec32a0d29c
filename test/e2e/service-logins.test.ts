import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { freePort } from "../servers/free-port.ts";
import { CLIENT, type Fault, type OidcIssuer, startOidcIssuer } from "../servers/oidc-issuer.ts";
import { until } from "../servers/until.ts";
import { cookiesOf, type Visited, visit } from "./http-visitor.ts";
import { ORDERS } from "./outbox-tables.ts";
import { type ServiceProcess, startService } from "./service-process.ts";
import { serverOfFile, stagesOn } from "./service-stage.ts";
import type { Stage } from "./stage.ts";

const ADMIN = "admin-token-of-sixteen";
const ANN = "anns-token-of-sixteen";
const BOB = "bobs-token-of-sixteen";
const CLEO = "cleos-token-of-sixteen";

/** Health for probes, metrics for scrapers, the console's files without any data, and the ways in. */
const OPEN = [
  "GET /",
  "GET /api/v1/login/oidc",
  "GET /api/v1/login/oidc/callback",
  "GET /api/v1/session",
  "GET /console/{file}",
  "GET /health",
  "GET /healthz",
  "GET /livez",
  "GET /metrics",
  "GET /openapi.json",
  "GET /ready",
  "GET /readyz",
  "GET /stats",
  "POST /api/v1/login",
  "POST /api/v1/logout",
];

interface Session {
  readonly access: string;
  readonly logins: readonly string[];
  readonly identity: { readonly name: string; readonly role: string; readonly maySeePayloads: boolean } | null;
}

interface Entry {
  readonly actor: string;
  readonly via: string;
  readonly action: string;
  readonly detail: Readonly<Record<string, unknown>>;
}

const stages = stagesOn(serverOfFile(), "logins", [ORDERS]);
const beganMs = performance.now();
let stage: Stage;
let issuer: OidcIssuer;
let service: ServiceProcess;
let address: string;
let env: Record<string, string>;

const api = (path: string, options: Parameters<typeof visit>[1] = {}) => visit(`${address}/api/v1${path}`, options);
const login = (token: string, headers: Record<string, string> = {}) =>
  api("/login", { method: "POST", body: { token }, headers });
const withCookie = (cookie: string, more: Record<string, string> = {}) => ({ headers: { cookie, ...more } });

async function sessionOf(headers: Record<string, string>): Promise<Session> {
  return JSON.parse((await api("/session", { headers })).body) as Session;
}

async function auditOf(query: string): Promise<readonly Entry[]> {
  const { body } = await api(`/audit?${query}`, { headers: { authorization: `Bearer ${ADMIN}` } });
  return (JSON.parse(body) as { entries: Entry[] }).entries;
}

interface Operation {
  readonly method: string;
  readonly path: string;
  readonly url: string;
  /** The least one that may; undefined for everybody. */
  readonly role: string | undefined;
}

/** All that the document of the service lists. */
async function operationsOf(): Promise<Operation[]> {
  const { paths } = JSON.parse((await visit(`${address}/openapi.json`)).body) as {
    paths: Record<string, Record<string, { "x-role"?: string }>>;
  };
  return Object.entries(paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, operation]) => ({
      method: method.toUpperCase(),
      path,
      url: `${address}${path.replaceAll(/\{\w+\}/g, "7e7ab6c8-9d4e-4f3a-8b2c-1a2b3c4d5e6f")}`,
      role: operation["x-role"],
    })),
  );
}

/** Goes to the issuer and back, as a browser would, up to the answer that would set the session. */
async function throughIssuer(change: (url: URL) => void = () => {}): Promise<Visited> {
  const begun = await api("/login/oidc");
  assert.equal(begun.status, 302, begun.body);
  const answered = await visit(begun.headers.location ?? "");
  assert.equal(answered.status, 302, answered.body);
  const back = new URL(answered.headers.location ?? "");
  assert.equal(`${back.origin}${back.pathname}`, `${address}/api/v1/login/oidc/callback`);
  change(back);
  return await visit(back.href, { headers: { cookie: cookiesOf(begun), "sec-fetch-site": "cross-site" } });
}

describe("logins", () => {
  before(async () => {
    [stage, issuer] = await Promise.all([stages(), startOidcIssuer()]);
    issuer.userInfo = {};
    const port = String(await freePort());
    address = `http://127.0.0.1:${port}`;
    const digest = createHash("sha256").update(BOB).digest("hex");
    env = {
      DATABASE_URL: stage.relayUrl,
      OUTBOX_SCHEMAS: "orders",
      OUTBOX_DESTINATION: "stdout:",
      PORT: port,
      ADMIN_TOKEN: ADMIN,
      API_TOKENS: `ann:viewer:${ANN},cleo:operator:${CLEO},bob:operator+payloads:sha256:${digest}`,
      OIDC_ISSUER: issuer.url,
      OIDC_CLIENT_ID: CLIENT.id,
      OIDC_CLIENT_SECRET: CLIENT.secret,
      OIDC_ROLE_CLAIM: "realm.roles",
      OIDC_ROLES: "viewer=support,viewer+payloads=privacy,operator=ops,admin=platform",
    };
    service = startService(["run"], env);
    await service.becomes("healthy");
  });
  after(async () => {
    await service?.[Symbol.asyncDispose]();
    await issuer?.[Symbol.asyncDispose]();
    await stage?.[Symbol.asyncDispose]();
  });

  test("G4 tokens: each has a name, a role and its own right to see payloads, also where only its digest is known", async () => {
    const as = async (token: string) => (await sessionOf({ authorization: `Bearer ${token}` })).identity;
    const own = { by: "token", expiresAt: null };
    assert.deepEqual(await as(ADMIN), { name: "admin", role: "admin", maySeePayloads: true, ...own });
    assert.deepEqual(await as(ANN), { name: "ann", role: "viewer", maySeePayloads: false, ...own });
    assert.deepEqual(await as(BOB), { name: "bob", role: "operator", maySeePayloads: true, ...own });
    assert.equal(await as(env.API_TOKENS?.split(":").at(-1) ?? ""), null, "the digest is no token");
    const { access, identity, logins } = await sessionOf({});
    assert.deepEqual([access, identity, logins], ["login", null, ["token", "oidc"]]);
  });

  test("G4 unauthenticated routes: 0; without a token every address of the OpenAPI document but the open ones is refused", async () => {
    const operations = await operationsOf();
    const open = operations.filter(({ role }) => role === undefined).map(({ method, path }) => `${method} ${path}`);
    assert.deepEqual(open.sort(), OPEN);
    const guarded = operations.filter(({ role }) => role !== undefined);
    assert.ok(guarded.length > 25);
    for (const headers of [{}, { authorization: "Bearer " }, { cookie: "outbox_relay_session=a.b" }]) {
      // Ten wrong tokens a minute are looked at, so that only one of these is a token at all.
      for (const { method, path, url } of "authorization" in headers ? guarded.slice(0, 1) : guarded) {
        const answer = await visit(url, { method, headers, ...(method === "POST" ? { body: {} } : {}) });
        assert.deepEqual([answer.status, answer.code], [401, "UNAUTHORIZED"], `${method} ${path}`);
        assert.ok(answer.headers["www-authenticate"]?.startsWith("Bearer"));
        if (method === "GET") assert.equal((await visit(url, { method: "HEAD", headers })).status, 401, path);
      }
    }
  });

  test("G4 roles: a viewer changes nothing, an operator is no administrator, and each may what its role says", async () => {
    const operations = await operationsOf();
    const ranks = ["viewer", "operator", "admin"];
    for (const [token, role] of [
      [ANN, "viewer"],
      [BOB, "operator"],
      [ADMIN, "admin"],
    ] as const) {
      for (const it of operations.filter((operation) => operation.role !== undefined)) {
        const isEnough = ranks.indexOf(role) >= ranks.indexOf(it.role ?? "");
        assert.ok(it.method === "GET" || it.role !== "viewer", `${it.path}: a viewer changes nothing`);
        if (isEnough && it.method === "POST") continue;
        const answer = await visit(it.url, {
          method: it.method,
          headers: { authorization: `Bearer ${token}` },
          ...(it.method === "POST" ? { body: {} } : {}),
        });
        const isPayload = /\/(?:payload|export|preview)$/.test(it.path) && role === "viewer";
        if (isEnough && !isPayload)
          assert.ok(![401, 403].includes(answer.status), `${role} ${it.path}: ${answer.body}`);
        else assert.equal(answer.status, 403, `${role} ${it.method} ${it.path}`);
      }
    }
    const plan = { method: "POST", body: { q: 'text:"4111"' } };
    const hidden = await api("/replays", { ...plan, headers: { authorization: `Bearer ${CLEO}` } });
    assert.equal(hidden.code, "PAYLOADS_HIDDEN", "who may not see payloads cannot ask for them by plans either");
    assert.notEqual((await api("/replays", { ...plan, headers: { authorization: `Bearer ${BOB}` } })).status, 403);
    const admins = operations.filter(({ role }) => role === "admin").map(({ path }) => path);
    assert.ok(admins.includes("/api/v1/config"));
  });

  test("G4 sessions: a login sets a cookie that scripts and other sites cannot use, and it is enough for the API", async () => {
    const answer = await login(ANN);
    assert.equal(answer.status, 204);
    const [cookie = ""] = answer.headers["set-cookie"] ?? [];
    assert.match(cookie, /; Path=\/; Max-Age=43200; HttpOnly; SameSite=Strict$/);
    assert.doesNotMatch(cookie, new RegExp(ANN));
    const secure = await login(ANN, { "x-forwarded-proto": "https" });
    assert.match(String(secure.headers["set-cookie"]), /; SameSite=Strict; Secure$/);
    const own = cookiesOf(answer);
    assert.equal((await sessionOf({ cookie: own })).identity?.name, "ann");
    assert.equal((await api("/pipelines", withCookie(own))).status, 200);
    assert.equal((await api("/pipelines", withCookie(own, { "sec-fetch-site": "same-origin" }))).status, 200);
    const pause = { method: "POST", body: {}, ...withCookie(own) };
    assert.equal((await api("/pipelines/x/pause", pause)).code, "ROLE_MISSING");
    const out = await api("/logout", { method: "POST", ...withCookie(own) });
    assert.match(String(out.headers["set-cookie"]), /^outbox_relay_session=; Path=\/; Max-Age=0;/);
    assert.equal(
      (await api("/pipelines", withCookie(own))).code,
      "SESSION_EXPIRED",
      "a copy of the cookie is dead too",
    );
    const [entry] = await until("the audit tells it", async () => {
      const entries = await auditOf("action=login&actor=ann");
      return entries.length >= 2 && entries;
    });
    assert.deepEqual([entry?.via, entry?.detail], ["console", { by: "token", address: "127.0.0.1" }]);
  });

  test("H1 G4 logout: a stream that is open ends, and a service that starts later knows the session has ended", async () => {
    const cookie = cookiesOf(await login(ANN));
    const stream = await fetch(`${address}/api/v1/live`, { headers: { cookie } });
    assert.equal(stream.status, 200);
    await api("/logout", { method: "POST", ...withCookie(cookie) });
    assert.match(await stream.text(), /^: connected/, "it has an end");
    await until("the audit tells it", async () => (await auditOf("action=logout&actor=ann")).length > 0);
    await using later = startService(["run"], { ...env, PORT: String(await freePort()) });
    await until("it listens", () => later.logs(({ message }) => /need a token/.test(String(message))).length > 0);
    const listening = String((await later.logged("its address", ({ message }) => message === "listening")).address);
    assert.equal((await visit(`${listening}/api/v1/pipelines`, withCookie(cookie))).code, "SESSION_EXPIRED");
  });

  test("G4 CSRF: a cookie is worth nothing to a page of another site, not even to read, nor can that page log somebody in", async () => {
    const cookie = cookiesOf(await login(BOB));
    const foreign: Record<string, string>[] = [
      { origin: "https://evil.example" },
      { "sec-fetch-site": "cross-site" },
      { "sec-fetch-site": "same-site" },
      { origin: "https://evil.example", "x-forwarded-host": "evil.example" },
    ];
    for (const headers of foreign) {
      assert.equal((await api("/pipelines", withCookie(cookie, headers))).code, "CROSS_SITE");
      const post = { method: "POST", body: {}, ...withCookie(cookie, headers) };
      assert.equal((await api("/pipelines/x/pause", post)).code, "CROSS_SITE");
      assert.equal((await login(BOB, headers)).code, "CROSS_SITE");
      assert.equal((await api("/logout", { method: "POST", headers })).code, "CROSS_SITE");
    }
  });

  test("G4 sessions: a changed or foreign one is refused, and none outlives its token", async () => {
    const cookie = cookiesOf(await login(ANN));
    const [name, body = "", signature = ""] = cookie.split(/[=.]/);
    const claims = JSON.parse(Buffer.from(body, "base64url").toString()) as Record<string, unknown>;
    const forged = Buffer.from(JSON.stringify({ ...claims, name: "admin", role: "admin" })).toString("base64url");
    const flipped = signature.startsWith("A") ? `B${signature.slice(1)}` : `A${signature.slice(1)}`;
    for (const value of [
      `${forged}.${signature}`,
      `${body}.${flipped}`,
      `${body}.`,
      body,
      "",
      `${body}.${"A".repeat(43)}`,
    ]) {
      assert.equal((await api("/pipelines", withCookie(`${name}=${value}`))).code, "UNAUTHORIZED", value);
    }
    await using later = startService(["run"], {
      ...env,
      PORT: String(await freePort()),
      API_TOKENS: `ann:viewer:${ANN.replace("token", "other")}`,
    });
    await until("it listens", () => later.logs(({ message }) => /need a token/.test(String(message))).length > 0);
    const listening = (await later.logged("its address", ({ message }) => message === "listening")).address;
    const there = await visit(`${String(listening)}/api/v1/pipelines`, withCookie(cookie));
    assert.equal(there.code, "UNAUTHORIZED", "the tokens are others there");
  });

  test("G4 rate limit: wrong tokens are answered 429 after ten in a minute, by bearer and by login, and are in the audit", async () => {
    const from = "127.0.0.9";
    const guess = (token: string) => api("/pipelines", { from, headers: { authorization: `Bearer ${token}` } });
    for (let guessed = 0; guessed < 10; guessed += 1) assert.equal((await guess(`guess-${guessed}`)).status, 401);
    const refused = await guess(ADMIN);
    assert.deepEqual([refused.status, refused.code], [429, "TOO_MANY_FAILURES"]);
    assert.match(String(refused.headers["retry-after"]), /^([1-9]|[1-5]\d|60)$/);
    const byLogin = await api("/login", { method: "POST", body: { token: ADMIN }, from });
    assert.equal(byLogin.status, 429);
    for (const path of ["/health", "/livez", "/readyz", "/metrics"]) {
      assert.equal((await visit(`${address}${path}`, { from })).status, 200, path);
    }
    assert.equal((await login(ADMIN)).status, 204, "others are not concerned");
    const refusals = await until("the audit tells it", async () => {
      const entries = await auditOf("action=login-refused");
      return entries.length > 0 && entries;
    });
    // A few in each minute since the service started, not all.
    const minutes = 1 + Math.floor((performance.now() - beganMs) / 60_000);
    assert.ok(refusals.length <= 5 * minutes, `${refusals.length} in ${minutes} minutes`);
    assert.doesNotMatch(JSON.stringify(refusals), /guess-/);
  });

  test("G4 OIDC: who has a role gets in with it, by code, PKCE, state and nonce", async () => {
    issuer.claims = { email: "eve@example.org", email_verified: true, realm: { roles: ["other", "ops"] } };
    const answer = await throughIssuer();
    assert.deepEqual([answer.status, answer.headers.location], [302, "../../../../"], answer.body);
    const cookie = cookiesOf(answer);
    assert.match(String(answer.headers["set-cookie"]), /outbox_relay_session=[^;]+; Path=\/; Max-Age=900;/);
    const { identity } = await sessionOf({ cookie });
    assert.deepEqual(
      [identity?.name, identity?.role, identity?.maySeePayloads],
      ["eve@example.org", "operator", false],
    );
    assert.equal((await api("/pipelines", withCookie(cookie))).status, 200);
    issuer.claims = { email: "eve@example.org", realm: { roles: ["ops", "privacy"] } };
    const both = await sessionOf({ cookie: cookiesOf(await throughIssuer()) });
    assert.deepEqual([both.identity?.role, both.identity?.maySeePayloads], ["operator", true], "groups add up");
    await until("the audit tells it", async () => (await auditOf("actor=eve@example.org")).length === 2);
    [issuer.claims, issuer.userInfo] = [{}, { email: "pat@example.org", realm: { roles: ["support"] } }];
    const asked = await sessionOf({ cookie: cookiesOf(await throughIssuer()) });
    assert.deepEqual([asked.identity?.name, asked.identity?.role], ["pat@example.org", "viewer"], "told by userinfo");
    issuer.userInfo = {};
    issuer.claims = { preferred_username: "admin", realm: { roles: ["support"] } };
    const namesake = await sessionOf({ cookie: cookiesOf(await throughIssuer()) });
    assert.equal(namesake.identity?.name, "oidc:admin", "nobody gets the name of a token");
  });

  test("G4 OIDC: who has no role does not get in, and is told what the issuer said", async () => {
    issuer.claims = { preferred_username: "mallory", realm: { roles: ["guests"] } };
    const none = await throughIssuer();
    assert.deepEqual([none.status, none.code, none.headers["set-cookie"]], [403, "ROLE_MISSING", undefined]);
    assert.match(none.body, /mallory has no role: realm\.roles holds guests\. The claims are .*preferred_username/);
    issuer.claims = {};
    assert.match((await throughIssuer()).body, /realm\.roles is missing from the claims/);
  });

  test("G4 OIDC: a wrong state, nonce, signature, audience, issuer or an expired token is refused, each", async () => {
    issuer.claims = { realm: { roles: ["platform"] } };
    const faults: Fault[] = ["state", "nonce", "signature", "audience", "issuer", "expired"];
    for (const fault of faults) {
      issuer.fault = fault;
      const answer = await throughIssuer();
      assert.deepEqual([answer.status, answer.code], [401, "LOGIN_REFUSED"], `${fault}: ${answer.body}`);
      assert.equal(answer.headers["set-cookie"], undefined, fault);
    }
    issuer.fault = "silent";
    assert.equal((await throughIssuer()).code, "ISSUER_UNREACHABLE");
    issuer.fault = null;
    const wrongCode = await throughIssuer((url) => url.searchParams.set("code", "made-up"));
    assert.equal(wrongCode.code, "LOGIN_REFUSED");
    assert.equal((await api("/login/oidc/callback?code=a&state=b")).code, "LOGIN_REFUSED", "never begun here");
    const stolen = (await throughIssuer((url) => url.searchParams.delete("state"))).code;
    assert.equal(stolen, "LOGIN_REFUSED");
    assert.equal((await throughIssuer()).status, 302, "without a fault it is let in");
  });
});
