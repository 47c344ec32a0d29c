import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";
import { loadConfig, loadSettings } from "../load-config.ts";
import { policyOf } from "../sources/presets.ts";
import { ConfigProblems } from "./config-problems.ts";
import { strictJson } from "./dotnet-settings.ts";
import { effectiveSettings, originText } from "./effective-settings.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "outbox-relay-dotnet-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

type Env = Readonly<Record<string, string>>;
const write = (name: string, text: string) => writeFileSync(join(folder, name), text);
const configOf = async (env: Env = {}, file?: string) => (await loadConfig({ env, cwd: folder, file })).config;

const WORKER = `{
  // As the worker has it.
  "Logging": { "LogLevel": { "Default": "Information" } },
  "AllowedHosts": "*", "Host": "not ours",
  "OutboxDispatcher": {
    "PollingIntervalSeconds": 7,
    "BatchSize": 50,
    "MaxRetryAttempts": 3,
    "BaseRetryDelaySeconds": 30,
    "MaxRetryDelaySeconds": 3600,
  },
  "connectionStrings": { "eventStore": "Host=db;Port=5432;Database=waitingroom_eventstore;Username=me;Password=secret" },
  "RabbitMq": { "HostName": "rabbitmq", "Port": 5672, "ExchangeName": "waiting_room_events", "QueuePrefix": "x" /* its own */ }
}`;

test("C1 a worker's appsettings.json is the config file, with its nested keys in seconds and in any letter case", async () => {
  write("appsettings.json", WORKER);
  const { database, destinations, policy, sources } = await configOf();
  assert.equal(database.url, "postgres://me:secret@db:5432/waitingroom_eventstore");
  assert.deepEqual(sources.tables, ["public.waiting_room_outbox"]);
  assert.deepEqual([destinations[0]?.kind, destinations[0]?.addresses], ["rabbitmq", ["rabbitmq:5672"]]);
  const { pollIntervalMs, retry } = policyOf("worker", policy);
  assert.deepEqual([pollIntervalMs, destinations[0]?.limits?.batchSize], [7_000, 50]);
  assert.ok(retry.kind === "exponential");
  assert.deepEqual([retry.attemptsMax, retry.initialMs, retry.maxMs], [4, 30_000, 3_600_000]);
});

test("C1 the environment's file overrides it, and both are below the environment", async () => {
  write("appsettings.json", WORKER);
  write("appsettings.Production.json", `{ "RabbitMq": { "HostName": "rabbit-prod" }, "OUTBOX_TABLE": "app.outbox" }`);
  write("appsettings.Staging.json", `{ "RabbitMq": { "HostName": "rabbit-staging" } }`);
  const hostOf = async (env: Env) => (await configOf(env)).destinations[0]?.addresses;
  assert.deepEqual(await hostOf({}), ["rabbit-prod:5672"]);
  assert.deepEqual(await hostOf({ DOTNET_ENVIRONMENT: "Staging" }), ["rabbit-staging:5672"]);
  assert.deepEqual(await hostOf({ ASPNETCORE_ENVIRONMENT: "Development" }), ["rabbitmq:5672"]);
  assert.deepEqual(await hostOf({ RabbitMq__HostName: "rabbit-env" }), ["rabbit-env:5672"]);
  assert.deepEqual((await configOf()).sources.tables, ["app.outbox"]);
  const settings = effectiveSettings(await loadSettings({ env: {}, cwd: folder }));
  const origin = (name: string) => originText(settings.find((it) => it.name === name)!.origin);
  assert.equal(origin("RABBITMQ_HOST"), "file appsettings.Production.json:1 RabbitMq:HostName");
  assert.equal(origin("RABBITMQ_PORT"), "file appsettings.json:13 RabbitMq:Port");
});

test("C1 appsettings.json can be named, and a config file of the relay's own precedes it", async () => {
  write("appsettings.json", WORKER);
  write(
    "outbox-relay.config.yaml",
    "database: { url: postgres://h/d }\nsources: { schemas: [a] }\ndestination: { url: 'stdout:' }",
  );
  assert.equal((await configOf()).destinations[0]?.kind, "stdout");
  assert.equal((await configOf({}, "appsettings.json")).destinations[0]?.kind, "rabbitmq");
});

test("C1 faults of appsettings.json are named with their file and line", async () => {
  const problemsOf = async (text: string) => {
    write("appsettings.json", text);
    return await configOf().then(
      () => "",
      (error: unknown) => {
        assert.ok(error instanceof ConfigProblems, String(error));
        return error.problems.join("\n");
      },
    );
  };
  assert.match(
    await problemsOf(WORKER.replace('"BatchSize"', '"BatchSise"')),
    /^OutboxDispatcher:BatchSise in appsettings\.json:7 is not a setting: did you mean OutboxDispatcher:BatchSize\?/,
  );
  assert.match(
    await problemsOf(WORKER.replace("7,", '"soon",')),
    /^OutboxDispatcher:PollingIntervalSeconds in appsettings\.json:6 is "soon": write a duration .* number of seconds/,
  );
  assert.match(await problemsOf("{ nonsense"), /^appsettings\.json:1 cannot be read/);
});

test("comments and trailing commas are removed from JSON, but not from its texts", () => {
  const text = `{ "a": "http://x, }", /* b\n */ "c": [1, 2, ], // d\n "e": "\\"//", }`;
  assert.deepEqual(JSON.parse(strictJson(text)), { a: "http://x, }", c: [1, 2], e: '"//' });
  assert.equal(strictJson(text).split("\n").length, text.split("\n").length);
});
