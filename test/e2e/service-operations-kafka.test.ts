import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type KafkaServer, startKafka } from "../servers/kafka.ts";
import { withAdmin } from "../servers/kafka-admin.ts";
import { headerText, readTopic } from "../servers/kafka-reader.ts";
import { type PostgresServer, startPostgres } from "../servers/postgres.ts";
import { eventsOf, openKafkaStage } from "./kafka-stage.ts";
import { runCommand } from "./service-process.ts";

let server: PostgresServer;
let kafka: KafkaServer;
before(async () => {
  [server, kafka] = await Promise.all([startPostgres({ version: 18, flags: ["-c", "fsync=on"] }), startKafka()]);
});
after(async () => {
  await Promise.all([server[Symbol.asyncDispose](), kafka[Symbol.asyncDispose]()]);
});

const PIPELINE = "orders.outbox->kafka";

test("A17 doctor asks the brokers: a topic that is missing is named, with the transactions in order", async () => {
  await using it = await openKafkaStage(server, "doctor", { KAFKA_BROKERS: kafka.brokers, TOPICS_CREATE: "false" });
  await it.insert(eventsOf("doctor.missing", 1));
  const { code, stdout, stderr } = await runCommand(["doctor"], it.env);
  assert.equal(code, 3, stderr);
  assert.match(stdout, /^! topics: Topics of kafka .*: doctor\.missing \(.*\)\n {4}TOPICS_CREATE=true/);
  assert.match(stdout, /^- destination: kafka: .*the ledger topic "\S+" does not exist yet\n {4}.*outbox-relay run/m);
  assert.match(stdout, /0 errors, 1 warning\n$/);
  const topics = () => withAdmin(kafka.directBrokers, (admin) => admin.listTopics({ includeInternals: true }));
  assert.deepEqual(await topics(), [], "the doctor created nothing");
  await kafka.createTopic("doctor.missing");
  assert.equal((await runCommand(["doctor"], it.env)).code, 0);
  assert.deepEqual(await topics(), ["doctor.missing"]);
  assert.equal((await it.once()).code, 0);
  const [ledger = ""] = (await topics()).filter((name) => name.includes("ledger"));
  const partitions = async () =>
    (await withAdmin(kafka.directBrokers, (admin) => admin.metadata({ topics: [ledger] }))).topics.get(ledger)
      ?.partitionsCount;
  const before = await partitions();
  const more = await runCommand(["doctor"], { ...it.env, LANES: "64" });
  assert.match(more.stdout, /^- destination: kafka: .*the ledger topic "\S+" has \d+ partitions, but 64 are needed$/m);
  assert.equal(await partitions(), before);
});

test("A2 exactly-once lanes are dealt anew only from an empty outbox, and stay exactly once", async () => {
  await kafka.createTopic("lanes.moved");
  await using it = await openKafkaStage(server, "lanes", { KAFKA_BROKERS: kafka.brokers, LANES: "2" });
  await using service = await it.run();
  const ids = await it.insert(eventsOf("lanes.moved", 100, 10));
  await it.drained();
  await service.becomes("healthy");
  assert.equal((await runCommand(["pause", PIPELINE], it.env)).code, 0);
  await service.logged("that it is paused", ({ event }) => event === "PipelinePaused");
  ids.push(...(await it.insert(eventsOf("lanes.moved", 100, 10))));
  const refused = await runCommand(["lanes", "set", PIPELINE, "5"], it.env);
  assert.equal(refused.code, 2);
  assert.match(
    refused.stderr,
    /delivers exactly once and has undelivered events: its ledger is kept per lane.*run --once/,
  );
  for (const lanes of [5, 1]) {
    await runCommand(["resume", PIPELINE], it.env);
    await it.drained();
    await runCommand(["pause", PIPELINE], it.env);
    const changed = await runCommand(["lanes", "set", PIPELINE, String(lanes)], it.env);
    assert.equal(changed.code, 0, changed.stderr);
    ids.push(...(await it.insert(eventsOf("lanes.moved", 100, 10))));
  }
  await runCommand(["resume", PIPELINE], it.env);
  await it.drained();
  const [row] = await it.sql<{ slots: string }>(
    "select first_slot || ' ' || lanes as slots from outbox_relay.pipelines",
  );
  assert.equal(row?.slots, "2 1", "slots that no lane had before, kept when there are fewer lanes");
  const records = await readTopic(kafka.directBrokers, "lanes.moved");
  assert.deepEqual(records.map((record) => headerText(record, "event-id")).toSorted(), ids.toSorted());
});
