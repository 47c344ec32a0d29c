import assert from "node:assert/strict";
import { test } from "node:test";
import type { NatsPublisherOptions } from "../../publishers/nats/nats-config.ts";
import { type Settings, settingsSchema } from "../settings/settings.ts";
import { natsScheme } from "./nats-scheme.ts";

function configure(address: string, settings: Record<string, string> = {}) {
  const problems: string[] = [];
  const known: Settings = settingsSchema.parse({ DATABASE_URL: "postgres://localhost/shop", ...settings });
  const config = natsScheme.configure({
    name: "nats",
    setting: "OUTBOX_DESTINATION",
    address,
    settings: known,
    problems,
  });
  return { config, options: config?.options as NatsPublisherOptions | undefined, problems };
}

const PEM = "-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----";

test("G2 an address names servers, stream and login", () => {
  const { config, options, problems } = configure("nats://relay:p%40ss@a:4223,b?stream=ORDERS");
  assert.deepEqual(problems, []);
  assert.deepEqual(config?.addresses, ["a:4223", "b:4222"]);
  assert.deepEqual([options?.user, options?.password, options?.stream], ["relay", "p@ss", "ORDERS"]);
  assert.match(config?.warnings.join() ?? "", /unencrypted/);
});

test("G2 a user without a password is a token, and tls:// requires TLS", () => {
  const { config, options } = configure("tls://my-token@a");
  assert.deepEqual([options?.token, options?.user, options?.tls], ["my-token", undefined, true]);
  assert.deepEqual(config?.warnings, []);
});

test("G2 A20 login and certificates can come from separate settings", () => {
  const { options, problems } = configure("nats://a", { NATS_USER: "u", NATS_PASSWORD: "p", NATS_TLS_CA: PEM });
  assert.deepEqual(problems, []);
  assert.deepEqual([options?.user, options?.password, options?.tls], ["u", "p", { ca: PEM }]);
});

test("G2 timeouts stay below the publish timeout", () => {
  const { options } = configure("nats://a", { PUBLISH_TIMEOUT: "1s" });
  assert.deepEqual([options?.connectTimeoutMs, options?.sendTimeoutMs], [600, 600]);
});

for (const [expected, settings] of [
  [/Several logins/, { NATS_TOKEN: "t", NATS_USER: "u" }],
  [/NATS_USER is not/, { NATS_PASSWORD: "p" }],
  [/only work together/, { NATS_TLS_CERT: PEM }],
  [/BEGIN NATS USER JWT/, { NATS_CREDENTIALS: PEM }],
] as const) {
  test(`G2 ${Object.keys(settings).join(" and ")} alone is reported as a mistake`, () => {
    const { config, problems } = configure("nats://a", settings);
    assert.equal(config, null);
    assert.match(problems.join("\n"), expected);
  });
}

test("G2 TOPICS_CREATE has no effect, and a warning says so", () => {
  assert.match(configure("nats://a", { TOPICS_CREATE: "true" }).config?.warnings.join() ?? "", /TOPICS_CREATE/);
});
