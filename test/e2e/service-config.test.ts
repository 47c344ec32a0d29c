import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { freePort } from "../servers/free-port.ts";
import { until } from "../servers/until.ts";
import { ORDERS } from "./outbox-tables.ts";
import { runCommand, startService } from "./service-process.ts";
import { serverOfFile, stagesOn } from "./service-stage.ts";
import type { Stage } from "./stage.ts";

const stage = stagesOn(serverOfFile(), "config", [ORDERS]);

/** A folder of its own with a config file in it. */
function folderWith(files: Readonly<Record<string, string>> = {}) {
  const path = mkdtempSync(join(tmpdir(), "outbox-relay-e2e-config-"));
  const write = (name: string, text: string) => writeFileSync(join(path, name), text);
  for (const [name, text] of Object.entries(files)) write(name, text);
  return { path, write, [Symbol.dispose]: () => rmSync(path, { recursive: true }) };
}

async function insert({ sql }: Stage, count = 1): Promise<void> {
  await sql(`insert into orders.outbox (aggregate_id, event_type, payload)
    select 'key-' || n, 'order.placed', '{}' from generate_series(1, ${count}) n`);
}

const eventsIn = (stdout: string): number => stdout.split('{"id":').length - 1;

const YAML = `database:
  url: \${DB}
sources:
  schemas: [orders]
destination:
  url: "stdout:"
`;

describe("outbox-relay with a config file", { concurrency: 2 }, () => {
  test("A14 G2: run --once works by a YAML file in the folder alone, and tells a migration where to go", async () => {
    await using it = await stage();
    using folder = folderWith({ "outbox-relay.config.yaml": YAML });
    await insert(it, 7);
    const { code, stdout, stderr } = await runCommand(["run", "--once"], { DB: it.relayUrl }, folder.path);
    assert.equal(code, 0, stderr);
    assert.equal(eventsIn(stdout), 7);
    const status = await runCommand(
      [
        "migrate",
        "status",
        "--config",
        join(folder.path, "outbox-relay.config.yaml"),
        "--set",
        "database.schema=nowhere",
      ],
      { DB: it.url },
    );
    assert.match(status.stdout, /^nowhere: version 0 of/, status.stderr);
  });

  test("A14 G2: a program is a config file too, and a flag before or behind the command wins over it", async () => {
    await using it = await stage();
    using folder = folderWith({
      "package.json": '{ "type": "module" }',
      "outbox-relay.config.ts": `const schemas: string[] = ["nowhere"];
export default { database: { url: process.env.DB }, sources: { schemas }, destination: { url: "stdout:" } };`,
    });
    await insert(it, 3);
    const args = ["--set", "sources.schemas=orders", "run", "--once", "--set", "LOG_LEVEL=error"];
    const { code, stdout, stderr } = await runCommand(args, { DB: it.relayUrl }, folder.path);
    assert.deepEqual([code, eventsIn(stdout), stderr], [0, 3, "3 events delivered\n"]);
  });

  test("G5: SIGHUP reads the file again, tells what changed, and keeps the old settings on any error", async () => {
    await using it = await stage();
    using folder = folderWith({ "outbox-relay.config.yaml": YAML });
    const port = await freePort();
    const env = { DB: it.relayUrl, PORT: String(port) };
    await using running = startService(["run", "--set", `http.port=${port}`], env, undefined, folder.path);
    await running.becomes("healthy");
    const refused = async (text: string, reason: RegExp) => {
      folder.write("outbox-relay.config.yaml", text);
      running.kill("SIGHUP");
      await running.logged(
        `the file is refused: ${reason}`,
        (line) => isRefusal(line) && reason.test(String(line.reason)),
      );
    };
    await refused(`${YAML}retry: { maxAttempts: [`, /outbox-relay\.config\.yaml:7 cannot be read/);
    await refused(`${YAML}retry: { maxAtempts: 3 }\n`, /did you mean retry\.maxAttempts\?/);
    await refused(YAML.replace('"stdout:"', "kafka://127.0.0.1:1"), /standard output.*restart the relay/);
    await insert(it);
    await until("the old settings still deliver", () => eventsIn(running.stdout()) === 1);
    const next = `${YAML}http: { host: 127.0.0.2 }\nmessages: { topic: "new.{type}" }\nhttp2: 1\n`;
    await refused(next, /http2 in outbox-relay\.config\.yaml:9 is not a setting/);
    folder.write("outbox-relay.config.yaml", next.replace("http2: 1\n", ""));
    running.kill("SIGHUP");
    const told = await running.logged("what changed", ({ message }) => /settings applied/.test(String(message)));
    assert.deepEqual(told.changed, ["TOPIC_TEMPLATE"]);
    const kept = await running.logged("what stays", ({ message }) => /need a restart/.test(String(message)));
    assert.deepEqual([kept.level, kept.kept], ["warn", ["HOST"]]);
    await insert(it);
    await until("the new settings deliver", () => eventsIn(running.stdout()) === 2);
    assert.match(running.stdout(), /"topic":"new\.order\.placed"/);
    await running.becomes("healthy");
    folder.write("outbox-relay.config.yaml", `${YAML}log: { level: error }\n`);
    running.kill("SIGHUP");
    await running.logged("the new level", ({ changed }) => String(changed) === "LOG_LEVEL,TOPIC_TEMPLATE");
    running.kill("SIGTERM");
    const { code, stdout, stderr } = await running.ended;
    assert.equal(code, 0);
    assert.doesNotMatch(stderr, /stopping: finishing events/, "that line is below the new level");
    assert.doesNotMatch(stdout + stderr, /:secret@/);
  });
});

const isRefusal = ({ message }: Readonly<Record<string, unknown>>) => /the old ones stay/.test(String(message));

describe("outbox-relay config", { concurrency: 2 }, () => {
  test("A14 G6: print tells each value with its origin and no secret; validate and schema use the same settings", async () => {
    using folder = folderWith({ "outbox-relay.config.yaml": YAML });
    const env = { DB: "postgres://me:canary@h/d", PORT: "4000", KAFKA_PASSWORD: "canary", KAFKA_USERNAME: "u" };
    const text = await runCommand(["config", "print", "--set", "LANES=8"], env, folder.path);
    assert.equal(text.code, 0, text.stderr);
    assert.match(
      text.stdout,
      /^DATABASE_URL +postgres:\/\/me:\*\*\*@h\/d +file outbox-relay\.config\.yaml:2 database\.url$/m,
    );
    assert.match(text.stdout, /^PORT +4000 +environment PORT$/m);
    assert.match(text.stdout, /^LANES +8 +flag --set LANES$/m);
    assert.match(text.stdout, /^BATCH_SIZE +500, worker 100.* preset of the table$/m);
    const json = await runCommand(["config", "print", "-o", "json"], env, folder.path);
    const settings = JSON.parse(json.stdout) as { name: string; value: unknown; origin: { kind: string } }[];
    const lanes = settings.find(({ name }) => name === "LANES");
    assert.deepEqual([lanes?.value, lanes?.origin.kind], [4, "default"]);
    assert.doesNotMatch(text.stdout + text.stderr + json.stdout + json.stderr, /canary/);
    const valid = await runCommand(["config", "validate"], env, folder.path);
    assert.deepEqual([valid.code, valid.stdout], [0, "the settings are valid (outbox-relay.config.yaml)\n"]);
    const invalid = await runCommand(["config", "validate"], { ...env, PORT: "x", LANES: "0" }, folder.path);
    assert.equal(invalid.code, 2);
    assert.match(invalid.stderr, /PORT is "x".*\n.*LANES is "0"/);
    const incomplete = await runCommand(["config", "print"], {});
    assert.equal(incomplete.code, 2, "it is printed, and told what is missing");
    assert.match(incomplete.stdout, /^PORT +3012 +default$/m);
    assert.match(incomplete.stderr, /DATABASE_URL is missing/);
    const schema = await runCommand(["config", "schema"], {});
    assert.deepEqual(JSON.parse(schema.stdout), JSON.parse(readFileSync(SCHEMA_FILE, "utf8")));
  });

  test("A14: init asks nothing, writes a file that can be used, and overwrites only by --force", async () => {
    using folder = folderWith();
    const first = await runCommand(["init"], {}, folder.path);
    assert.equal(first.code, 0, first.stderr);
    assert.match(first.stdout, /^Created outbox-relay\.config\.yaml[\s\S]*outbox-relay migrate up/);
    assert.equal((await runCommand(["config", "validate"], {}, folder.path)).code, 0);
    folder.write("outbox-relay.config.yaml", "mine");
    const second = await runCommand(["init"], {}, folder.path);
    assert.equal(second.code, 2);
    assert.match(second.stderr, /already exists: `outbox-relay init --force` overwrites it/);
    assert.match(
      (await runCommand(["init", "--format", "json"], {}, folder.path)).stderr,
      /reads only one config file/,
    );
    assert.equal(readFileSync(join(folder.path, "outbox-relay.config.yaml"), "utf8"), "mine");
    assert.equal((await runCommand(["init", "--force"], {}, folder.path)).code, 0);
    assert.match(readFileSync(join(folder.path, "outbox-relay.config.yaml"), "utf8"), /^# Settings of outbox-relay/);
  });
});

const SCHEMA_FILE = join(import.meta.dirname, "..", "..", "docs", "reference", "config.schema.json");

test("A14 G2 G6: every bad input ends with code 2 and a line that names it, and nothing is started", async () => {
  await using it = await stage();
  using folder = folderWith({
    "half.yaml": `${YAML}http: { port: `,
    "typo.yaml": `${YAML}htpp: { port: 1 }\n`,
    "empty.json": "",
  });
  const taken = createServer();
  await new Promise<void>((resolve) => taken.listen(0, "127.0.0.1", resolve));
  const { port } = taken.address() as { port: number };
  const base = { DATABASE_URL: it.relayUrl, OUTBOX_SCHEMAS: "orders", OUTBOX_DESTINATION: "stdout:", DB: it.relayUrl };
  const run = ["run"];
  const cases: [string[], Record<string, string>, RegExp][] = [
    [run, { OUTBOX_SCHEMAS: "" }, /OUTBOX_SCHEMAS is "": write one or more items/],
    [run, { PORT: String(port) }, /PORT \d+ on 127\.0\.0\.1 is in use: set PORT to a free port/],
    [[...run, "--config", "half.yaml"], {}, /half\.yaml:\d+ cannot be read/],
    [[...run, "--config", "nowhere.yaml"], {}, /nowhere\.yaml cannot be read: ENOENT/],
    [[...run, "--config", "empty.json"], {}, /empty\.json is empty: add settings/],
    [[...run, "--config", "typo.yaml"], {}, /htpp in typo\.yaml:7 is not a setting: did you mean http\?/],
    [run, { OUTBOX_SCHEMA: "orders" }, /OUTBOX_SCHEMA is not a setting: did you mean OUTBOX_SCHEMAS\?/],
    [run, { KAFKA_SSL: "flase" }, /KAFKA_SSL is "flase": write true, false.*did you mean false\?/],
    [run, { MAX_RETRIES: "3", RETRY_MAX_ATTEMPTS: "4" }, /MAX_RETRIES and RETRY_MAX_ATTEMPTS .*differ: keep one/],
    [[...run, "--set", "PORT=1", "--set", "PORT=2"], {}, /--set PORT is set twice with different values/],
    [run, { DATABASE_URL: "postgres://:pw@h/d" }, /a password but no user: set PGUSER/],
    [["rnu"], {}, /unknown command 'rnu'[\s\S]*Did you mean run\?/],
  ];
  try {
    const check = async ([args, env, told]: (typeof cases)[number]) => {
      const { code, stdout, stderr } = await runCommand(args, { ...base, ...env }, folder.path);
      assert.equal(code, 2, stderr);
      assert.match(stderr, told);
      assert.equal(eventsIn(stdout), 0);
    };
    for (const pair of pairsOf(cases)) await Promise.all(pair.map(check));
    assert.deepEqual(await it.sql("select from outbox_relay.instances"), []);
  } finally {
    taken.close();
  }
});

/** Two at a time: more only wait for each other. */
function pairsOf<T>(items: readonly T[]): T[][] {
  return items.flatMap((_, index) => (index % 2 === 0 ? [items.slice(index, index + 2)] : []));
}
