import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { after, before, describe, test } from "node:test";
import { promisify } from "node:util";
import { ConfigResourceTypes, IncrementalAlterConfigOperationTypes } from "@platformatic/kafka";
import { type KafkaServer, startKafka } from "../servers/kafka.ts";
import { withAdmin } from "../servers/kafka-admin.ts";
import { kafkaClassPath } from "../servers/kafka-binaries.ts";
import { type KafkaRecord, readTopic } from "../servers/kafka-reader.ts";
import { writeTopic } from "../servers/kafka-writer.ts";
import { type PostgresServer, startPostgres } from "../servers/postgres.ts";
import { until } from "../servers/until.ts";
import { backup, copyDatabase } from "./database-copies.ts";
import { assertCounts, assertOnce, problemsOnce } from "./kafka-checks.ts";
import { eventsOf, type KafkaStage, openKafkaStage } from "./kafka-stage.ts";
import { runCommand } from "./service-process.ts";

let postgres: PostgresServer;
let kafka: KafkaServer;

before(async () => {
  [postgres, kafka] = await Promise.all([startPostgres({ version: 15 }), startKafka()]);
});

after(async () => {
  await kafka?.[Symbol.asyncDispose]();
  await postgres?.[Symbol.asyncDispose]();
});

/** A database of its own, and a ledger of its own. */
const stage = (name: string, env: Readonly<Record<string, string>> = {}): Promise<KafkaStage> =>
  openKafkaStage(postgres, name, { KAFKA_BROKERS: kafka.brokers, SERVICE_NAME: name, ...env });

const ledgerOf = (name: string): string => `outbox-relay.ledger.${name}`;

const read = (topic: string): Promise<KafkaRecord[]> => readTopic(kafka.directBrokers, topic);

async function delivered(it: KafkaStage): Promise<void> {
  const { code, stderr } = await it.once();
  assert.equal(code, 0, stderr);
}

/** By the owner of the tables: the relay's own role may not. */
async function adopt(url: string, ...args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await runCommand(["adopt", ...args], { DATABASE_URL: url });
  assert.equal(code, 0, stderr);
  return stdout;
}

/** As compaction does once the ring has come round, which would take thousands of batches. */
async function forgetBatches(topic: string, count: number): Promise<void> {
  const notes = (await read(topic)).filter(({ key }) => !String(key).startsWith("fence/"));
  const offset = notes.filter(({ partition }) => partition === 0)[count]?.offset ?? assert.fail("too few notes");
  await setPolicy(topic, "compact,delete");
  const partitions = [{ partition: 0, offset: BigInt(offset) }];
  await withAdmin(kafka.directBrokers, (admin) => admin.deleteRecords({ topics: [{ name: topic, partitions }] }));
  await setPolicy(topic, "compact");
}

async function setPolicy(topic: string, value: string): Promise<void> {
  const configs = [{ name: "cleanup.policy", configOperation: IncrementalAlterConfigOperationTypes.SET, value }];
  const resources = [{ resourceType: ConfigResourceTypes.TOPIC, resourceName: topic, configs }];
  await withAdmin(kafka.directBrokers, (admin) => admin.incrementalAlterConfigs({ resources }));
}

/** Runs what a message says, word by word, with the class behind the script. */
async function runAsTold(message: string): Promise<void> {
  const [, words = ""] = /`kafka-configs\.sh (.*?)`/.exec(message) ?? assert.fail(message);
  const java = ["-cp", await kafkaClassPath(), "kafka.admin.ConfigCommand", ...words.split(" ")];
  await promisify(execFile)("java", java);
}

describe("the ledger topic in wrong hands", { concurrency: 3 }, () => {
  test("A2: deleted while the relay was away: it halts, says so, and goes on when adopted; nothing is lost or doubled", async () => {
    await using it = await stage("deleted_between");
    const ids = await it.insert(eventsOf("deleted.between", 40));
    await delivered(it);
    await kafka.deleteTopic(ledgerOf("deleted_between"));
    const later = await it.insert(eventsOf("deleted.between", 40));
    await using running = await it.run();
    const told =
      /^orders\.outbox->kafka: The ledger is empty, but the database settled batch \d+ of lane \d of orders\.outbox->kafka .*\[LEDGER_GAP\].*`outbox-relay adopt`/;
    await problemsOnce(running, told);
    await running.logged("the gap", ({ code, level }) => code === "LEDGER_GAP" && level === "error");
    assertOnce(await read("deleted.between"), ids, "nothing moves before a person has decided");
    assert.equal(await it.pendingCount(), later.length);
    const refused = await runCommand(["adopt"], { DATABASE_URL: it.relayUrl });
    assert.equal(refused.code, 2, "the relay's own role may not decide");
    assert.match(refused.stderr, /permission denied for table identity .*role relay_deleted_between/);
    assert.match(await adopt(it.url), /^4 lanes of all pipelines continue from the ledger's position/);
    await it.drained();
    await running.becomes("healthy");
    assertOnce(await read("deleted.between"), [...ids, ...later]);
  });

  test("A2: deleted under a running relay: the same", async () => {
    await using it = await stage("deleted_under", { LANES: "1" });
    await using running = await it.run();
    const ids = await it.insert(eventsOf("deleted.under", 40));
    await it.drained();
    await kafka.deleteTopic(ledgerOf("deleted_under"));
    const later = await it.insert(eventsOf("deleted.under", 40));
    await problemsOnce(running, /The ledger is empty, but the database settled batch \d+ of lane 0 .*\[LEDGER_GAP\]/);
    assertOnce(await read("deleted.under"), ids);
    await adopt(it.url, "orders.outbox->kafka", "--lane", "0");
    await it.drained();
    await running.becomes("healthy");
    assertOnce(await read("deleted.under"), [...ids, ...later]);
  });

  test("A2: made by the broker itself, it is refused with the command that mends it: exit 2; after that command all flows", async () => {
    await using it = await stage("made_by_broker");
    await writeTopic(kafka.directBrokers, ledgerOf("made_by_broker"), ["somebody wrote here"]);
    const ids = await it.insert(eventsOf("made.by.broker", 20));
    const { code, stderr } = await it.once();
    assert.equal(code, 2, stderr);
    assert.match(stderr, /"outbox-relay\.ledger\.made_by_broker" has cleanup\.policy=delete .*\[LEDGER_UNFIT\]/);
    assert.equal(await it.pendingCount(), ids.length);
    // One that is to stay does so, and says what is wrong until that is corrected.
    await using running = await it.run();
    await problemsOnce(running, /has cleanup\.policy=delete .*\[LEDGER_UNFIT\]/);
    await runAsTold(stderr);
    await it.drained();
    await running.becomes("healthy");
    assertOnce(await read("made.by.broker"), ids);
  });

  test("A2: no longer compacted, it is refused likewise, and mended it still knows what was delivered", async () => {
    await using it = await stage("uncompacted");
    const ids = await it.insert(eventsOf("uncompacted", 20));
    await delivered(it);
    await setPolicy(ledgerOf("uncompacted"), "compact,delete");
    ids.push(...(await it.insert(eventsOf("uncompacted", 20))));
    const refused = await it.once();
    assert.equal(refused.code, 2, refused.stderr);
    assert.match(
      refused.stderr,
      /has cleanup\.policy=compact,delete and would delete.*--add-config cleanup\.policy=compact/,
    );
    await setPolicy(ledgerOf("uncompacted"), "compact");
    await delivered(it);
    assertOnce(await read("uncompacted"), ids);
  });

  test("A2: two databases behind one name of service share a ledger, and every event of both comes once", async () => {
    await using one = await stage("shared_one", { SERVICE_NAME: "shared" });
    await using other = await stage("shared_two", { SERVICE_NAME: "shared" });
    const ids: string[] = [];
    const env = { TRANSACTION_SIZE: "20", LEASE_TIMEOUT: "2s" };
    for (const it of [one, other]) ids.push(...(await it.insert(eventsOf("shared", 400))));
    {
      await using first = await one.run(env);
      await using second = await other.run(env);
      for (const it of [one, other]) await it.waitFor("it is at work", async () => (await it.pendingCount()) < 380);
      first.kill("SIGKILL");
      second.kill("SIGTERM");
      assert.equal((await second.ended).code, 0);
    }
    for (const it of [one, other]) ids.push(...(await it.insert(eventsOf("shared", 100))));
    await using first = await one.run(env);
    await using second = await other.run(env);
    await Promise.all([one.drained(), other.drained()]);
    await Promise.all([first.becomes("healthy"), second.becomes("healthy")]);
    assertOnce(await read("shared"), ids);
  });

  test("A2 G2: from exactly once to at least once and back on the same tables: no halt, nothing lost", async () => {
    await using it = await stage("switched");
    const ids: string[] = [];
    for (const DELIVERY of ["exactly-once", "at-least-once", "exactly-once"]) {
      ids.push(...(await it.insert(eventsOf("switched", 50))));
      const { code, stderr } = await it.once({ DELIVERY });
      assert.equal(code, 0, stderr);
    }
    assertOnce(await read("switched"), ids);
    const lanes = await it.sql("select from outbox_relay.lanes where ledgered_batch = 0 or settled_batch < 3");
    assert.deepEqual(lanes, [], "both kinds went through every lane");
  });
});

describe("a database that was restored", () => {
  test("A2: to a state within the ledger's reach: under a running relay it heals, nothing is lost or doubled", async () => {
    await using it = await stage("restored", { TRANSACTION_SIZE: "5" });
    const before = await it.insert(eventsOf("restored", 40));
    await delivered(it);
    const pending = await it.insert(eventsOf("restored", 100));
    const restore = await backup(postgres);
    await using running = await it.run();
    await it.drained();
    const forgotten = await it.insert(eventsOf("restored", 40));
    await it.drained();
    await restore();
    assert.equal(await it.pendingCount(), pending.length, "the database has forgotten");
    const later = await it.insert(eventsOf("restored", 40));
    await it.drained();
    await running.becomes("healthy");
    assertOnce(await read("restored"), [...before, ...pending, ...forgotten, ...later]);
    await running.logged("what the ledger told of the forgotten", ({ event }) => event === "LaneHealed");
  });

  test("A2: to a state beyond it: the lane halts; adopted, it sends again only what the ledger has forgotten", async () => {
    await using it = await stage("too_old", { LANES: "1", TRANSACTION_SIZE: "1" });
    const before = await it.insert(eventsOf("too.old", 10));
    await delivered(it);
    const pending = await it.insert(eventsOf("too.old", 80));
    const restore = await backup(postgres);
    await delivered(it);
    await restore();
    await forgetBatches(ledgerOf("too_old"), 26);
    const later = await it.insert(eventsOf("too.old", 5));
    await using running = await it.run();
    await problemsOnce(
      running,
      /does not reach back to what the database settled: 16 of the batches 11 to 90 of lane 0 .*\[LEDGER_GAP\].*`outbox-relay adopt`/,
    );
    assertOnce(await read("too.old"), [...before, ...pending]);
    await adopt(it.url);
    await it.drained();
    await running.becomes("healthy");
    const twice = new Set(pending.slice(0, 16));
    const counts = [...before, ...pending, ...later].map((id) => [id, twice.has(id) ? 2 : 1] as const);
    assertCounts(await read("too.old"), new Map(counts), "the ledger knows the last 64 of 90 batches");
  });

  test("A2: on another server: it halts; adopted it takes the old one's place, as a copy it works beside it", async () => {
    await using it = await stage("moved");
    await using elsewhere = await startPostgres({ version: 18 });
    const before = await it.insert(eventsOf("moved", 40));
    await delivered(it);
    const pending = await it.insert(eventsOf("moved", 40));
    await elsewhere.query(`create role ${it.role} login`);
    for (const database of ["moved", "beside"]) {
      await copyDatabase({ server: postgres, database: "moved" }, { server: elsewhere, database });
    }
    await delivered(it);
    const relayUrl = (database: string) => elsewhere.databaseUrl(database, it.role, "secret");
    const told =
      /was (?:made|created) on another server.*\[IDENTITY_CHANGED\].*`outbox-relay adopt`.*`outbox-relay adopt --as-copy`/;

    await using moved = await it.run({ DATABASE_URL: relayUrl("moved") });
    await problemsOnce(moved, told);
    assertOnce(await read("moved"), [...before, ...pending], "nothing is sent by a stranger");
    assert.match(
      await adopt(elsewhere.databaseUrl("moved")),
      /^4 lanes of all pipelines continue from the ledger's position/,
    );
    const left = (database: string) => async () => {
      const { rows } = await elsewhere.query("select from orders.outbox where not published", [], database);
      return rows.length === 0;
    };
    await until("what the old one delivered is marked here too", left("moved"));
    await moved.becomes("healthy");
    assertOnce(await read("moved"), [...before, ...pending]);

    await using beside = await it.run({ DATABASE_URL: relayUrl("beside") });
    await problemsOnce(beside, told);
    assert.match(await adopt(elsewhere.databaseUrl("beside"), "--as-copy"), /under a new database identity/);
    await until("the copy delivers what it has", left("beside"));
    await beside.becomes("healthy");
    const twice = new Set(pending);
    const counts = [...before, ...pending].map((id) => [id, twice.has(id) ? 2 : 1] as const);
    assertCounts(await read("moved"), new Map(counts), "only what waited when the copy was made comes from both");
  });
});
