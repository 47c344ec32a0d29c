import assert from "node:assert/strict";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";
import type { KafkaPublisherOptions } from "../../publishers/kafka/kafka-config.ts";
import { loadConfig } from "../load-config.ts";
import { ConfigProblems } from "./config-problems.ts";

const SRC = join(import.meta.dirname, "../..");

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "outbox-relay-config-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

const write = (name: string, text: string) => writeFileSync(join(folder, name), text);

type Env = Readonly<Record<string, string>>;

async function configOf(env: Env = {}, file?: string) {
  return (await loadConfig({ env, cwd: folder, file })).config;
}

async function problemsOf(env: Env = {}, file?: string): Promise<string> {
  try {
    await configOf(env, file);
  } catch (error) {
    assert.ok(error instanceof ConfigProblems, String(error));
    return error.problems.join("\n");
  }
  return "";
}

const GROUPS = { database: { url: "postgres://me:pw@db/shop" }, sources: { schemas: ["a", "b"] } };
const YAML = `database:
  url: postgres://me:pw@db/shop
sources: { schemas: [a, b] }
destination:
  kafka: { brokers: [k1:9092, "k2:9092"] }
topics:
  create: false
retry: { maxAttempts: 3, initialDelay: 2s }
http: { port: 4000 }
`;

test("A14 G2 a YAML file in the folder describes the whole service, topics.create included", async () => {
  write("outbox-relay.config.yaml", YAML);
  const config = await configOf();
  assert.deepEqual([config.http.port, config.database.url], [4_000, "postgres://me:pw@db/shop"]);
  assert.deepEqual(config.sources.schemas, ["a", "b"]);
  assert.ok(config.destinations[0]!.kind === "kafka");
  const { brokers, createTopics } = config.destinations[0]!.options as KafkaPublisherOptions;
  assert.deepEqual([brokers, createTopics], [["k1:9092", "k2:9092"], false]);
  assert.deepEqual([config.policy.retry.attemptsMax, config.policy.retry.initialMs], [3, 2_000]);
});

test("A14 G2 JSON, JavaScript and TypeScript are equivalent, and --config or a variable names the file", async () => {
  const destination = { kafka: { brokers: ["k:1"] } };
  const whole = JSON.stringify({ $schema: "x", ...GROUPS, destination }, null, "\t");
  const imported = JSON.stringify(join(SRC, "config/reading/define-config.ts"));
  write("outbox-relay.config.json", whole);
  const expected = (await configOf()).database.url;
  write("a.js", `export default ${whole.replace('"$schema": "x",', "")};`);
  write(
    "b.mts",
    `import { defineConfig } from ${imported};\nconst port: number = 4001;
export default defineConfig({ ...${JSON.stringify({ ...GROUPS, destination })}, http: { port } });`,
  );
  write("c.mjs", `export default async () => (${whole});`);
  for (const file of ["a.js", "b.mts", "c.mjs"]) assert.equal((await configOf({}, file)).database.url, expected, file);
  assert.equal((await configOf({ OUTBOX_RELAY_CONFIG: join(folder, "b.mts") })).http.port, 4_001);
  const byFlag = await configOf({ OUTBOX_RELAY_CONFIG: "nowhere.yaml" }, "b.mts");
  assert.equal(byFlag.http.port, 4_001, "the flag wins over the variable");
});

test("G5 a config program is loaded again at every reload", async () => {
  const text = (port: number) =>
    `export default { ...${JSON.stringify(GROUPS)}, destination: { url: "stdout:" }, http: { port: ${port} } }`;
  write("outbox-relay.config.js", text(4_000));
  assert.equal((await configOf()).http.port, 4_000);
  write("outbox-relay.config.js", text(4_001));
  assert.equal((await configOf()).http.port, 4_001);
});

test("A14 environment variables are inserted into the strings of a file, with a default or a problem", async () => {
  write(
    "outbox-relay.config.yaml",
    `database: { url: "postgres://\${U}@\${H:-localhost}/d" }
sources: { schemas: ["\${S:-x}"], pollInterval: "\${POLL}" }
destination: { url: "\${TO:-stdout:}" }
http: { port: "\${MY_PORT:-4002}" }
service: { instance: "$\${U}" }
`,
  );
  const config = await configOf({ U: "me", POLL: "2s", S: "" });
  assert.equal(config.database.url, "postgres://me@localhost/d");
  assert.deepEqual([config.sources.schemas, config.http.port, config.policy.pollIntervalMs], [["x"], 4_002, 2_000]);
  assert.equal(config.instanceName, `\${U}`, "a dollar more takes it as it is");
  const problems = await problemsOf({ U: "me" });
  assert.match(
    problems,
    /sources\.pollInterval in outbox-relay\.config\.yaml:2 names the variable POLL, which is not set/,
  );
});

test("A14 an unknown key is refused with its line and the nearest known one", async () => {
  const cases: [string, RegExp][] = [
    [
      "database:\n  ulr: x\n",
      /database\.ulr in outbox-relay\.config\.yaml:2 is not a setting: did you mean database\.url\?/,
    ],
    ["http: { prot: 1 }", /http\.prot .*did you mean http\.port\?/],
    ["kafka: { brokers: [k] }", /kafka in .*:1 is not a setting: did you mean destination\.kafka\?/],
    ["port: 3012", /did you mean database\.port, http\.port, metrics\.port or destination\.rabbitmq\.port\?/],
    ["colour: blue", /colour in .*:1 is not a setting: the file can have database, service/],
    ["KAFKA_BROKERS: k", /KAFKA_BROKERS in .*is not a setting: write destination\.kafka\.brokers/],
    ["destination: { kafka: k:9092 }", /destination\.kafka .*is a group: write brokers, sasl/],
    ["http: { portFile: /x }", /http\.portFile .*is not a setting: http can have host, port/],
  ];
  for (const [text, expected] of cases) {
    write("outbox-relay.config.yaml", text);
    assert.match(await problemsOf(), expected);
  }
});

test("A14 a value of the wrong type or out of bounds is refused with file, line and key", async () => {
  const cases: [string, RegExp][] = [
    [
      "database:\n  password: 123456\n",
      /database\.password in .*:2 has the wrong type: write a string; put a number in quotes/,
    ],
    ["http: { port: [1] }", /http\.port .*write a number/],
    ["http: { port: 70000 }", /http\.port in .*:1 is "70000": write a whole number from 1 to 65535/],
    ["topics: { create: 3 }", /topics\.create .*write true or false/],
    ["topics: { create: flase }", /topics\.create .*is "flase": write true.*did you mean false\?/],
    ["sources: { schemas: [1, 2] }", /sources\.schemas .*write a list of strings/],
    ["sources: { schemas: [] }", /sources\.schemas .*is "": write one or more items/],
    ["sources: { schemas: }", /sources\.schemas .*is "": write one or more items/],
    ["sources: { columns: { id: 1 } }", /sources\.columns .*a map from names to strings/],
    ["sources: { pollInterval: true }", /sources\.pollInterval .*a duration such as/],
    ["destination: { delivery: twice }", /destination\.delivery .*is "twice": write exactly-once or at-least-once/],
    ["- a\n- b", /outbox-relay\.config\.yaml has no settings/],
  ];
  for (const [text, expected] of cases) {
    write("outbox-relay.config.yaml", text);
    assert.match(await problemsOf(), expected);
  }
});

test("A14 an unreadable file is reported with the line and the fix", async () => {
  const broken: [string, string, RegExp][] = [
    ["x.yaml", "database:\n  url: [a\nb: 1", /^x\.yaml:3 cannot be read: /],
    ["x.yaml", "a: 1\na: 2", /^x\.yaml:2 cannot be read: duplicate key/],
    ["x.json", '{\n  "http": {', /^x\.json:2 cannot be read: /],
    ["x.json", '{\n\t"http": { "port": 1,\n"port": 2 }}', /^x\.json:3 cannot be read: duplicate key/],
    ["x.yaml", "a: *b", /^x\.yaml.* cannot be read: /],
    ["x.yaml", "  \n", /^x\.yaml is empty: add settings, or remove it/],
    ["x.mts", "export default {", /^x\.mts cannot be loaded: /],
    ["x.mjs", "throw new Error('boom')", /^x\.mjs cannot be loaded: boom/],
    ["x.mjs", "export const a = 1", /^x\.mjs has no default export: write export default defineConfig/],
    ["x.mjs", "export default 3", /^x\.mjs has no settings/],
    ["x.toml", "a = 1", /^x\.toml is not a config file: its name must end with \.yaml/],
  ];
  for (const [name, text, expected] of broken) {
    write(name, text);
    assert.match(await problemsOf({}, name), expected);
  }
  assert.match(await problemsOf({}, "nowhere.yaml"), /^nowhere\.yaml cannot be read: ENOENT/);
  assert.match(await problemsOf({}, "nowhere.ts"), /^nowhere\.ts cannot be read: no such file/);
  mkdirSync(join(folder, "folder.yaml"));
  assert.match(await problemsOf({}, "folder.yaml"), /^folder\.yaml cannot be read: EISDIR/);
  write("huge.json", `"${"x".repeat(1_000_001)}"`);
  assert.match(await problemsOf({}, "huge.json"), /huge\.json has more than 1000000 bytes/);
  write("secret.yaml", YAML);
  chmodSync(join(folder, "secret.yaml"), 0);
  // Root can read everything.
  if (process.getuid?.() !== 0) assert.match(await problemsOf({}, "secret.yaml"), /cannot be read: EACCES/);
});

test("A14 two config files in a folder are refused unless one is named", async () => {
  write("outbox-relay.config.yaml", YAML);
  write("outbox-relay.config.json", "{}");
  assert.match(
    await problemsOf(),
    /^outbox-relay\.config\.yaml and outbox-relay\.config\.json both exist in .*--config/,
  );
  assert.equal((await configOf({}, "outbox-relay.config.yaml")).http.port, 4_000);
});

test("A20 secrets of a config file can come from separate files, and no error shows them", async () => {
  write("pw", "s3cret\n");
  write(
    "outbox-relay.config.yaml",
    YAML.replace("me:pw@", "me@").replace("database:", `database:\n  passwordFile: ${join(folder, "pw")}`),
  );
  const config = await configOf();
  assert.equal(config.database.url, "postgres://me:s3cret@db/shop");
  assert.ok(config.secrets.includes("s3cret"));
  write("outbox-relay.config.yaml", "http: { adminToken: [hunter2] }\ndatabase: { passwordFile: /nowhere/pw }");
  const problems = await problemsOf();
  assert.match(problems, /http\.adminToken in .* has the wrong type/);
  assert.match(problems, /database\.passwordFile in .*:2 names a file that cannot be read: ENOENT/);
  assert.doesNotMatch(problems, /hunter2/);
});

test("A14 a missing setting is also reported by its key in the file", async () => {
  write("outbox-relay.config.yaml", "destination: { kafka: { brokers: [k], sasl: { password: x } } }");
  const problems = await problemsOf();
  assert.match(
    problems,
    /KAFKA_PASSWORD \(destination\.kafka\.sasl\.password\) is set but KAFKA_USERNAME \(destination/,
  );
  assert.match(problems, /DATABASE_URL \(database\.url\) is missing/);
});

test("H13 each fault in a list is reported by its item and its own line, with what to write instead", async () => {
  write(
    "c.yaml",
    'routes:\n  - types: ["a.*"]\n  - types: ["b.*"]\n    onExhausted: skipp\n  - topic: "{type}"\n    envelop: raw\n',
  );
  await assert.rejects(configOf({}, "c.yaml"), (error) => {
    assert.deepEqual((error as ConfigProblems).problems, [
      'routes[1].onExhausted in c.yaml:4: "skipp"; use park, block or skip',
      "routes[2].envelop in c.yaml:6 is not a setting: did you mean envelope?",
    ]);
    return true;
  });
});
