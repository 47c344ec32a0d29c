import assert from "node:assert/strict";
import { test } from "node:test";
import { type AccessConfig, NO_ACCESS_RULES, tokenDigest } from "../config/access-config.ts";
import type { Clock } from "../core/clock.ts";
import { EndedSessions, sessionMark } from "./auth/ended-sessions.ts";
import { foreignBy, peerIn } from "./auth/foreign.ts";
import { sessionCookie } from "./auth/session.ts";
import { accessText, Guard } from "./guard.ts";
import { HttpError } from "./http-error.ts";
import type { Role } from "./identity.ts";

const TOKENS: AccessConfig = {
  ...NO_ACCESS_RULES,
  tokens: [
    { name: "admin", role: "admin", maySeePayloads: true, digest: tokenDigest("s3cret") },
    { name: "ann", role: "viewer", maySeePayloads: false, digest: tokenDigest("ann's own, long one") },
  ],
};

const endedOn = (clock: Clock, marks: readonly string[] = []) => new EndedSessions(clock, async () => marks);

function guardOf(host: string, access: AccessConfig = NO_ACCESS_RULES) {
  const time = { nowMs: 1_000_000 };
  const refusals: string[] = [];
  const clock = { wallMs: () => time.nowMs, monotonicMs: () => time.nowMs, sleep: async () => {} };
  const refused = ({ address }: { address: string }) => void refusals.push(address);
  return {
    guard: new Guard({ host, access: () => access, clock, refused, closed: () => {}, ended: endedOn(clock) }),
    time,
    refusals,
  };
}

interface Question {
  readonly method?: string;
  readonly role?: Role;
  readonly address?: string;
}

function codeOf(guard: Guard, headers: Record<string, string>, question: Question = {}): string {
  const { method = "GET", role = "viewer", address = "192.0.2.7" } = question;
  try {
    guard.requireOwnPage({ method, headers });
    const foreign = foreignBy({ headers, httpVersion: "1.1", peer: "own" });
    return `let in as ${guard.admit({ method, headers, address, foreign }, role).name}`;
  } catch (error) {
    assert.ok(error instanceof HttpError);
    return `${error.status} ${error.code}`;
  }
}

test("G4 on the loopback address the API is open under this machine's names, and refuses any other Host", () => {
  const { guard } = guardOf("127.0.0.1");
  for (const host of ["127.0.0.1:3012", "localhost:3012", "LOCALHOST", "[::1]:3012", "127.0.0.1"]) {
    assert.equal(codeOf(guard, { host }, { role: "admin" }), "let in as local", host);
  }
  const names = ["evil.example:3012", "127.0.0.1.evil.example", "localhost.evil.example:3012", "", "10.0.0.1", "a:b"];
  for (const host of names) {
    assert.equal(codeOf(guard, { host }), "403 HOST_UNKNOWN", host);
    assert.equal(codeOf(guard, { host, "x-forwarded-host": "localhost" }), "403 API_OFF", host);
  }
  assert.equal(codeOf(guardOf("::1").guard, { host: "[::1]:3012" }), "let in as local");
});

test("G4 on other addresses the API is off without a token, and open to tokens by their role", () => {
  const host = "relay.internal:3012";
  const { guard: off } = guardOf("0.0.0.0");
  assert.equal(codeOf(off, { host }), "403 API_OFF");
  assert.equal(codeOf(off, { host, authorization: "Bearer undefined" }), "403 API_OFF");
  const { guard } = guardOf("0.0.0.0", TOKENS);
  assert.equal(codeOf(guard, { host, authorization: "Bearer s3cret" }, { role: "admin" }), "let in as admin");
  assert.equal(codeOf(guard, { host, authorization: "bearer ann's own, long one" }), "let in as ann");
  assert.equal(
    codeOf(guard, { host, authorization: "Bearer ann's own, long one" }, { role: "operator" }),
    "403 ROLE_MISSING",
  );
  for (const authorization of ["", "Bearer ", "Bearer s3cre", "Bearer s3cret2", "Basic s3cret", "s3cret"]) {
    assert.equal(codeOf(guard, { host, authorization }), "401 UNAUTHORIZED", authorization);
  }
  const { guard: here } = guardOf("127.0.0.1", TOKENS);
  assert.equal(codeOf(here, { host: "localhost" }), "401 UNAUTHORIZED", "configured, so required");
});

test("G4 CSRF: another site's page cannot change anything, with or without the token", () => {
  const host = "127.0.0.1:3012";
  const authorization = "Bearer s3cret";
  for (const access of [NO_ACCESS_RULES, TOKENS]) {
    const { guard } = guardOf("127.0.0.1", access);
    const post = (headers: Record<string, string>) =>
      codeOf(guard, { host, authorization, ...headers }, { method: "POST" }).replace(/ as .*/, "");
    assert.equal(post({}), "let in", "not a browser");
    assert.equal(post({ origin: "http://127.0.0.1:3012", "sec-fetch-site": "same-origin" }), "let in");
    assert.equal(post({ origin: "https://evil.example" }), "403 CROSS_SITE");
    assert.equal(post({ origin: "http://127.0.0.1:9999" }), "403 CROSS_SITE", "another port is another site");
    assert.equal(post({ origin: "null" }), "403 CROSS_SITE");
    assert.equal(post({ "sec-fetch-site": "cross-site" }), "403 CROSS_SITE");
    assert.equal(post({ "sec-fetch-site": "same-site" }), "403 CROSS_SITE");
    const lie = { origin: "https://evil.example", "x-forwarded-host": "evil.example" };
    assert.equal(post(lie), "403 CROSS_SITE", "any client can send the headers of a proxy");
  }
});

test("G4 CSRF behind a proxy: only pages of PUBLIC_URL may change anything", () => {
  const { guard } = guardOf("0.0.0.0", { ...TOKENS, publicOrigin: "https://relay.example.org" });
  const post = (origin: string) =>
    codeOf(guard, { host: "10.0.0.3:3012", origin, authorization: "Bearer s3cret" }, { method: "POST" });
  assert.equal(post("https://relay.example.org"), "let in as admin");
  assert.equal(post("http://relay.example.org"), "403 CROSS_SITE");
  assert.equal(post("https://relay.example.org.evil.example"), "403 CROSS_SITE");
});

test("G4 ten wrong tokens a minute from one address, then all are refused; a token that was right before still works", () => {
  const { guard, refusals, time } = guardOf("0.0.0.0", TOKENS);
  const ask = (token: string, address: string) => codeOf(guard, { authorization: `Bearer ${token}` }, { address });
  assert.equal(ask("ann's own, long one", "198.51.100.1"), "let in as ann");
  for (let guess = 0; guess < 10; guess += 1) assert.equal(ask(`guess ${guess}`, "198.51.100.1"), "401 UNAUTHORIZED");
  assert.equal(ask("guess", "198.51.100.1"), "429 TOO_MANY_FAILURES");
  assert.equal(ask("s3cret", "198.51.100.1"), "429 TOO_MANY_FAILURES", "a right guess reveals nothing");
  assert.equal(ask("ann's own, long one", "198.51.100.1"), "let in as ann");
  assert.equal(ask("s3cret", "198.51.100.2"), "let in as admin", "other addresses are not affected");
  assert.equal(refusals.length, 10);
  time.nowMs += 60_000;
  assert.equal(ask("s3cret", "198.51.100.1"), "let in as admin");
  for (let guess = 0; guess < 10; guess += 1) ask("guess", `2001:db8:0:7::${guess}`);
  assert.equal(ask("guess", "2001:db8:0:7:ffff::1"), "429 TOO_MANY_FAILURES", "an IPv6 network counts as one client");
});

test("H1 G4 a short token that was right from a shared address before cannot be guessed from there without limit", () => {
  const { guard } = guardOf("0.0.0.0", TOKENS);
  const ask = (token: string) => codeOf(guard, { authorization: `Bearer ${token}` });
  assert.equal(ask("s3cret"), "let in as admin");
  for (let guess = 0; guess < 10; guess += 1) assert.equal(ask(`guess ${guess}`), "401 UNAUTHORIZED");
  assert.equal(ask("s3cret"), "429 TOO_MANY_FAILURES", "a right guess reveals nothing");
});

test("G4 wrong tokens from ever new addresses do not fill the memory: the oldest entries are dropped", () => {
  const { guard } = guardOf("0.0.0.0", TOKENS);
  const ask = (address: string) => codeOf(guard, { authorization: "Bearer guess" }, { address });
  for (let guess = 0; guess < 10; guess += 1) ask("198.51.100.1");
  assert.equal(ask("198.51.100.1"), "429 TOO_MANY_FAILURES");
  for (let one = 0; one < 10_000; one += 1) ask(`10.0.${one >> 8}.${one & 255}`);
  assert.equal(ask("198.51.100.1"), "401 UNAUTHORIZED");
});

test("G4 requests of one identity: a burst of twice the rate, then the rate, and other identities are not affected", () => {
  const { guard, time } = guardOf("0.0.0.0", TOKENS);
  const ask = (token: string) => codeOf(guard, { authorization: `Bearer ${token}` });
  const letIn = (token: string) => {
    let count = 0;
    while (ask(token).startsWith("let in")) count += 1;
    return count;
  };
  assert.deepEqual([letIn("s3cret"), letIn("ann's own, long one")], [200, 200]);
  assert.equal(ask("s3cret"), "429 TOO_MANY_REQUESTS");
  time.nowMs += 1_000;
  assert.equal(letIn("s3cret"), 100);
  time.nowMs += 60_000;
  assert.equal(letIn("s3cret"), 200);
});

test("G4 one identity can have fifty open requests and streams; each end makes room for another", () => {
  const { guard } = guardOf("0.0.0.0", TOKENS);
  const caller = (token: string) =>
    guard.identify({
      method: "GET",
      headers: { authorization: `Bearer ${token}` },
      address: "192.0.2.7",
      foreign: null,
    });
  const admin = caller("s3cret");
  const [first, ...others] = Array.from({ length: 50 }, () => guard.enter(admin));
  assert.throws(() => guard.enter(admin), { status: 429 });
  const ann = guard.enter(caller("ann's own, long one"));
  first?.();
  const last = guard.enter(admin);
  assert.throws(() => guard.enter(admin), { status: 429 });
  for (const leave of [...others, last, ann]) leave();
  assert.equal(Array.from({ length: 50 }, () => guard.enter(admin)).length, 50);
});

test("G4 an expired session has its own error code; a session has the rights that its token has now", () => {
  let access = TOKENS;
  const nowMs = { at: 1_000_000_000 };
  const clock = { wallMs: () => nowMs.at, monotonicMs: () => nowMs.at, sleep: async () => {} };
  const guard = new Guard({
    host: "0.0.0.0",
    access: () => access,
    clock,
    refused: () => {},
    closed: () => {},
    ended: endedOn(clock),
  });
  const cookieOf = (name: string) =>
    sessionCookie(access, { by: "token", name, groups: [] }, {}, nowMs.at).split(";")[0] ?? "";
  const cookie = cookieOf("ann");
  const ask = (role: Role = "viewer") => codeOf(guard, { cookie }, { role });
  assert.equal(ask(), "let in as ann");
  assert.equal(ask("operator"), "403 ROLE_MISSING", "whatever the session claims");
  assert.equal(codeOf(guard, { cookie: `theme=dark; ${cookie}; other=1` }), "let in as ann");
  assert.equal(codeOf(guard, { cookie: cookieOf("nobody") }), "401 UNAUTHORIZED");
  nowMs.at += 12 * 3_600_000 - 1_000;
  assert.equal(ask(), "let in as ann");
  nowMs.at += 1_000;
  assert.equal(ask(), "401 SESSION_EXPIRED");
  const renewed = cookieOf("ann");
  assert.equal(codeOf(guard, { cookie: renewed }), "let in as ann");
  access = { ...TOKENS, tokens: TOKENS.tokens.map((it) => ({ ...it, digest: tokenDigest(`new ${it.name}`) })) };
  assert.equal(codeOf(guard, { cookie: renewed }), "401 UNAUTHORIZED", "the tokens have changed");
});

test("G4 a proxied local request is detected by headers, HTTP/1.0 or the user of the other end", () => {
  const why = (headers: Record<string, string>, httpVersion = "1.1", peer: "own" | "other" | "unknown" = "own") =>
    foreignBy({ headers, httpVersion, peer });
  const named = { host: "127.0.0.1:3012", connection: "close", "user-agent": "curl", "x-outbox-relay-console": "1" };
  assert.deepEqual([why(named), why(named, "1.1", "unknown")], [null, null]);
  for (const header of ["forwarded", "via", "x-forwarded-for", "x-forwarded", "x-real-ip", "cf-ray", "x-envoy-a"]) {
    assert.match(why({ ...named, [header]: "" }) ?? "", new RegExp(`has the header ${header}`));
  }
  assert.match(why(named, "1.0") ?? "", /HTTP\/1\.0/);
  assert.match(why(named, "1.1", "other") ?? "", /another user/);
});

test("G4 the other end's user is read from the system's table; a closed socket has none", () => {
  const row = (local: string, remote: string, uid: number, inode: number) =>
    `  1: ${local} ${remote} 01 00000000:00000000 00:00000000 00000000 ${uid} 0 ${inode} 1 0000 20 4 30 10 -1`;
  const ends = { localAddress: "127.0.0.1", localPort: 3012, remoteAddress: "127.0.0.2", remotePort: 40_000 };
  const [here, there] = ["0100007F:0BC4", "0200007F:9C40"];
  const own = row(here, there, 1_000, 7);
  const of = (...rows: string[]) => peerIn(["header", ...rows].join("\n"), ends, 1_000);
  assert.equal(of(own, row(there, here, 1_000, 8)), "own");
  assert.equal(of(own, row(there, here, 0, 8)), "own", "root may do everything anyway");
  assert.equal(of(own, row(there, here, 33, 8)), "other");
  assert.equal(of(own, row(there, here, 0, 0)), "other", "closed by its owner");
  assert.equal(of(own, row("0200007F:9C41", here, 1_000, 8)), "other");
  assert.equal(of(), "unknown", "a system that shows no connections");
  const six = { ...ends, localAddress: "::1", remoteAddress: "::1" };
  const one = "00000000000000000000000001000000";
  const table = [row(`${one}:0BC4`, `${one}:9C40`, 1, 7), row(`${one}:9C40`, `${one}:0BC4`, 2, 8)].join("\n");
  assert.deepEqual([peerIn(table, six, 2), peerIn(table, six, 3)], ["own", "other"]);
});

test("H1 G4 a session of an account is short, and a role that the settings revoke is gone at once", () => {
  const rights = (role: Role) => ({ role, maySeePayloads: false });
  const oidc = {
    ...{ issuer: "https://id", clientId: "c", clientSecret: "s", redirectUrl: null, scopes: [], roleClaim: "roles" },
    ...{ rightsByGroup: new Map([["ops", rights("operator")]]), sessionMs: 900_000 },
  };
  let access: AccessConfig = { ...NO_ACCESS_RULES, oidc };
  const time = { nowMs: 1_000_000_000 };
  const clock = { wallMs: () => time.nowMs, monotonicMs: () => time.nowMs, sleep: async () => {} };
  const guard = new Guard({ host: "h", access: () => access, clock, refused() {}, closed() {}, ended: endedOn(clock) });
  const owner = { by: "oidc", name: "eve", groups: ["ops"] } as const;
  const text = sessionCookie(access, owner, {}, time.nowMs);
  assert.match(text, /Max-Age=900;/);
  const cookie = text.split(";")[0] ?? "";
  assert.equal(codeOf(guard, { cookie }, { role: "operator" }), "let in as eve");
  access = { ...access, oidc: { ...oidc, rightsByGroup: new Map([["ops", rights("viewer")]]) } };
  assert.equal(codeOf(guard, { cookie }, { role: "operator" }), "403 ROLE_MISSING");
  access = { ...access, oidc: { ...oidc, rightsByGroup: new Map() } };
  assert.equal(codeOf(guard, { cookie }), "401 UNAUTHORIZED");
  access = { ...access, oidc };
  time.nowMs += 900_000;
  assert.equal(codeOf(guard, { cookie }), "401 SESSION_EXPIRED");
});

test("H1 G4 a logout ends every copy of the cookie, on this instance at once and on others by the audit", async () => {
  const { guard, time } = guardOf("0.0.0.0", TOKENS);
  const newCookie = () =>
    sessionCookie(TOKENS, { by: "token", name: "ann", groups: [] }, {}, time.nowMs).split(";")[0] ?? "";
  const [cookie, other] = [newCookie(), newCookie()];
  const ended = guard.endSession({ cookie });
  assert.equal(ended?.name, "ann");
  assert.equal(codeOf(guard, { cookie }), "401 SESSION_EXPIRED");
  assert.equal(codeOf(guard, { cookie: other }), "let in as ann", "her other sessions stay");
  assert.equal(guard.endSession({ cookie: "outbox_relay_session=a.b" }), null);
  const clock = { wallMs: () => time.nowMs, monotonicMs: () => time.nowMs, sleep: async () => {} };
  const marks = [sessionMark(ended?.id ?? "")];
  const options = { host: "0.0.0.0", access: () => TOKENS, clock, refused() {}, closed() {} };
  const elsewhere = new Guard({ ...options, ended: endedOn(clock, marks) });
  await elsewhere.prepare({ cookie });
  assert.equal(codeOf(elsewhere, { cookie }), "401 SESSION_EXPIRED");
  const down = new EndedSessions(clock, async () => Promise.reject(new Error("no database")));
  const alone = new Guard({ ...options, ended: down });
  await alone.prepare({ cookie: other });
  assert.equal(codeOf(alone, { cookie: other }), "let in as ann", "login works while the database is down");
});

test("G4 the log line at the start says which of the three modes applies", () => {
  assert.match(accessText("127.0.0.1", NO_ACCESS_RULES), /open only to this user on this machine/);
  const behind = { ...NO_ACCESS_RULES, publicOrigin: "https://relay.example.org" };
  assert.match(accessText("127.0.0.1", behind), /are off: PUBLIC_URL is set.* no ADMIN_TOKEN is set/);
  assert.match(accessText("0.0.0.0", NO_ACCESS_RULES), /are off: 0\.0\.0\.0 .* no ADMIN_TOKEN is set/);
  assert.equal(accessText("0.0.0.0", TOKENS), "API and console need a token (admin, ann)");
});
