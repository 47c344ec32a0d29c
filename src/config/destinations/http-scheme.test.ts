import assert from "node:assert/strict";
import { test } from "node:test";
import type { Message } from "../../core/event.ts";
import type { HttpPublisherOptions } from "../../publishers/http/http-config.ts";
import { settingsSchema } from "../settings/settings.ts";
import { httpScheme } from "./http-scheme.ts";

function configured(address: string, env: Readonly<Record<string, string>> = {}) {
  const problems: string[] = [];
  const settings = settingsSchema.parse(env);
  const config = httpScheme.configure({ name: "http", setting: "OUTBOX_DESTINATION", address, settings, problems });
  return { config, problems: problems.join("\n"), options: config?.options as HttpPublisherOptions };
}

function message(headers: Readonly<Record<string, string>> = {}, key: string | null = "k"): Message {
  const payload = Buffer.alloc(0);
  const event = { id: "id-1", type: "order.placed", key, payload, headers: {}, correlationId: null, createdAt: null };
  return { event, topic: "t", key, headers, payload };
}

function target(address: string) {
  const { options, problems } = configured(address);
  assert.equal(problems, "");
  assert.ok(typeof options.url === "object", `${address} is a template`);
  return options.url;
}

test("G2 an address has host, path, query and login", () => {
  const { config, options } = configured("https://user:p%40ss@Host.example/a%20b/../c?x=1");
  assert.deepEqual([config?.kind, config?.addresses], ["http", ["host.example:443"]]);
  assert.equal(options.url, "https://host.example/c?x=1");
  assert.equal(options.headers?.authorization, `Basic ${Buffer.from("user:p@ss").toString("base64")}`);
  assert.deepEqual(configured("http://[::1]:8080").config?.addresses, ["[::1]:8080"]);
  assert.deepEqual([options.requestTimeoutMs, options.sendMs], [3_500, 1_000]);
});

test("G2 invalid addresses are reported without their content", () => {
  for (const [address, expected] of [
    ["https://", /not an address of the form/],
    ["https://ho st/", /host that is not/],
    ["https://host:99999/", /host that is not/],
    ["https://host/}x", /a brace/],
    ["https://host/{{type}}", /a brace/],
    ["https://host:{key}/", /host that is not/],
    ["https://host/{kei}", /did you mean \{key\}/],
    ["https://host/{table}", /cannot use \{table\}/],
  ] as const) {
    const { config, problems } = configured(address);
    assert.equal(config, null, address);
    assert.match(problems, expected);
  }
  assert.match(configured("https://h/", { HTTP_TLS_KEY: "-----BEGIN KEY-----" }).problems, /HTTP_TLS_CERT is not/);
});

test("A20 an unencrypted secret causes a warning, but not on the same machine", () => {
  const env = { HTTP_HEADERS: "authorization=x" };
  assert.match(configured("http://host/", env).config!.warnings.join(), /unencrypted/);
  for (const [address, given] of [
    ["https://host/", env],
    ["http://127.0.0.1/", env],
    ["http://host/", {}],
  ] as const) {
    assert.deepEqual(configured(address, given).config?.warnings, []);
  }
});

test("H1 A20 credentials never go to a host that events name freely: refused at start", () => {
  const free = "https://{header:host}/x";
  const tls = { HTTP_TLS_CERT: "-----BEGIN CERTIFICATE-----", HTTP_TLS_KEY: "-----BEGIN KEY-----" };
  for (const [address, env] of [
    [free, { HTTP_HEADERS: "authorization=Bearer s3cret" }],
    [free, { HTTP_HEADERS: "x-api-key=s3cret,content-type=text/plain" }],
    ["https://me:s3cret@{header:host}/x", {}],
    ["https://{header:host}.example.org/x", { HTTP_HEADERS: "x-api-key=s3cret" }],
    [free, tls],
  ] as const) {
    const { config, problems } = configured(address, env);
    assert.equal(config, null, address);
    assert.match(problems, /events name the host: .*HTTP_ALLOWED_HOSTS/);
    assert.doesNotMatch(problems, /s3cret/);
    assert.equal(configured(address, { ...env, HTTP_ALLOWED_HOSTS: "*.example.org" }).problems, "");
  }
  const secret = `whsec_${Buffer.alloc(32).toString("base64")}`;
  const harmless = { HTTP_HEADERS: "Content-Type=text/plain,user-agent=shop", HTTP_SIGNING_SECRET: secret };
  assert.equal(configured(free, harmless).problems, "", "a signature does not give the secret away");
  assert.equal(configured("https://host/{type}", { HTTP_HEADERS: "authorization=x", ...tls }).problems, "");
});

test("A20 a value of an event stays one part of the path or the query, whatever it contains", () => {
  const { of, origin, scope } = target("https://host/a/{header:x}/b?q={header:x}");
  assert.deepEqual([origin, scope], ["https://host", "event"]);
  for (const value of [
    "plain",
    "a/b",
    "a\\b",
    "a?b#c",
    "ü €",
    "100%",
    "a'b",
    "%2e%2e",
    "@evil.example",
    "...",
    "a..b",
  ]) {
    const url = new URL(of(message({ x: value })));
    assert.deepEqual([url.origin, url.searchParams.get("q")], ["https://host", value]);
    assert.deepEqual(url.pathname.split("/").map(decodeURIComponent), ["", "a", value, "b"]);
  }
  for (const value of ["..", ".", "../x", "x/..", "a\\..\\b", "\ud800", ""]) {
    assert.throws(() => of(message({ x: value })), /\{header:x\}/, value);
  }
  const joined = target("https://host/a/{header:x}{header:y}/b").of;
  assert.throws(() => joined(message({ x: ".", y: "." })), /leave the address's path/);
});

test("a value that the event lacks is named; a default replaces it", () => {
  assert.throws(
    () => target("https://host/{key}").of(message({}, null)),
    /the address needs \{key\}, but the event has no such value/,
  );
  assert.equal(target("https://host/{key|none}").of(message({}, null)), "https://host/none");
});

test("A20 F2 an address that depends only on the type fails per topic; a host that an event names is guarded", () => {
  assert.deepEqual(target("https://host/{type}").scope, "topic");
  const { of, origin, scope } = target("https://{header:h}.example:8443/x");
  assert.deepEqual([origin, scope], [null, "event"]);
  assert.deepEqual(configured("https://{header:h}/").config?.addresses, []);
  assert.equal(of(message({ h: "a.b" })), "https://a.b.example:8443/x");
  for (const value of ["evil.org/", "evil.org#", "a@b", "a:1", "[::1]", "a..b", "-a", "a b", "ü"]) {
    assert.throws(() => of(message({ h: value })), /cannot be part of a host name/, value);
  }
});
