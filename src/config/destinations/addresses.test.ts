import assert from "node:assert/strict";
import { test } from "node:test";
import { loadConfig } from "../load-config.ts";
import { ConfigProblems } from "../reading/config-problems.ts";

const REST = { OUTBOX_SCHEMAS: "orders", DATABASE_URL: "postgres://relay@db/shop" };

async function problemsOf(address: string, more: Readonly<Record<string, string>> = {}): Promise<string> {
  const env = { ...REST, OUTBOX_DESTINATION: address, ...more };
  const error = await loadConfig({ env, cwd: import.meta.dirname, flags: [] }).catch((it: unknown) => it);
  assert.ok(error instanceof ConfigProblems, `${address} is accepted`);
  return error.problems.join("\n");
}

/** `canary` stands for a secret. One test, for Redis, proves that such a mistake ends the command with exit code 2. */
const MISTAKES: readonly (readonly [string, RegExp, Readonly<Record<string, string>>?])[] = [
  ["bullmq+redis://u:canary@localhost/0?queue=a:b", /queue.*forbids/],
  ["bullmq+redis://u:canary@localhost/0?attempts=0", /attempts/],
  ["bullmq+redis://u:canary@localhost/0?removeOnComplete=soon", /removeOnComplete/],
  ["bullmq+redis://u:canary@a,b/0", /cluster/],
  ["redis://u:canary@localhost/zero", /a database number/],
  ["redis://u:canary@localhost/0?maxlenn=5", /did you mean maxlen/],
  ["redis://u:canary@localhost/0?maxlen=many", /maxlen.*whole number/],
  ["redis://u:canary@localhost/0?dedupe=never", /dedupe.*duration/],
  ["redis://u:canary@localhost/0?prefix={a}", /prefix/],
  ["redis://u:canary@a,b/0", /clusters are not supported/],
  ["redis://canary@localhost/0", /but no password/],
  ["nats://relay:canary@host:4222?strem=ORDERS", /did you mean stream\?/],
  ["nats://relay:canary@host:99999", /host:port/],
  ["nats://relay:canary@host?stream=A.B", /stream's name/],
  ["nats://relay:canary@host/path", /path/],
  ["nats://canary@host", /Several logins/, { NATS_USER: "relay" }],
  ["nats://canary@host", /exactly-once/, { DELIVERY: "exactly-once" }],
  ["sqs://eu-central-1", /queue's name is missing/],
  ["sqs://frankfurt/orders", /region/],
  ["sqs://eu-central-1/orders?endpont=http://a", /did you mean endpoint\?/],
  ["sqs://key:canary@eu-central-1/orders", /remove the keys from the address/],
  ["https://user:canary@", /not an address of the form|host that is not/],
  ["https://host/{typ}", /did you mean \{type\}/],
  ["https://host/{schema}", /an address cannot use \{schema\}/],
  ["https://host/", /write whsec_ and the base64/, { HTTP_SIGNING_SECRET: "canary" }],
  ["https://host/", /has the header "host"/, { HTTP_HEADERS: "host=canary" }],
  ["https://host/", /HTTP does not support it/, { DELIVERY: "exactly-once" }],
];

test("G2 A20 a mistake in an address is reported before the start, without the secret", async () => {
  for (const [address, expected, env] of MISTAKES) {
    const problems = await problemsOf(address, env);
    assert.match(problems, expected, address);
    assert.doesNotMatch(problems, /canary/);
  }
});
