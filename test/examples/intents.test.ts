import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import pg from "pg";
import { runCommand, startService } from "../e2e/service-process.ts";
import { freePort } from "../servers/free-port.ts";
import { type KafkaServer, startKafka } from "../servers/kafka.ts";
import { headerText, readTopic } from "../servers/kafka-reader.ts";
import { type PostgresServer, startPostgres } from "../servers/postgres.ts";
import { type RabbitServer, startRabbit } from "../servers/rabbitmq.ts";
import { overRabbit, takeAll } from "../servers/rabbitmq-reader.ts";
import { until } from "../servers/until.ts";
import { type PayrollDesk, startPayrollDesk } from "./payroll-desk.ts";

const FOLDER = fileURLToPath(new URL("../../examples/intents/", import.meta.url));
const textOf = (file: string) => readFileSync(join(FOLDER, file), "utf8");

let postgres: PostgresServer;
let kafka: KafkaServer;
let rabbit: RabbitServer;
let payroll: PayrollDesk;
let database: pg.Pool;
let env: Readonly<Record<string, string>>;

before(async () => {
  [postgres, kafka, rabbit, payroll] = await Promise.all([
    startPostgres({ version: 18 }),
    startKafka(),
    startRabbit(),
    startPayrollDesk(),
  ]);
  await kafka.createTopic("user-notifications", { partitions: 1 });
  await overRabbit(rabbit.url, async (channel) => {
    await channel.assertExchange("desk", "topic", { durable: true });
    await channel.assertQueue("rejections", { durable: true });
    await channel.bindQueue("rejections", "desk", "desk.rejections");
  });
  database = new pg.Pool({ connectionString: postgres.url, max: 2 });
  await database.query(textOf("schema.sql"));
  env = {
    DATABASE_URL: postgres.url,
    NOTIFICATIONS_BROKERS: kafka.brokers,
    PAYROLL_URL: payroll.origin,
    DESK_URL: rabbit.url,
    LOG_EVENTS: "all",
    RETRY_SCHEDULE: "50ms,100ms",
  };
  assert.equal((await runCommand(["migrate", "up"], env, FOLDER)).code, 0);
});
after(async () => {
  await database?.end();
  await Promise.all([postgres, kafka, rabbit, payroll].map((server) => server?.[Symbol.asyncDispose]()));
});

interface Row {
  readonly id: string;
  readonly type: string;
  readonly isDelivered: boolean;
  readonly attempts: number;
  readonly error: string | null;
}

async function intents(): Promise<readonly Row[]> {
  const { rows } =
    await database.query<Row>(`select id, intent ->> 'type' as type, delivered_at is not null as "isDelivered",
    attempt_count as attempts, last_error as error from time_tracking.intents order by created_at`);
  return rows;
}

const deliveredTypes = async () =>
  (await intents())
    .filter(({ isDelivered }) => isDelivered)
    .map(({ type }) => type)
    .sort();

const sections = textOf("expected-output.txt").split("\n\n");
const withoutId = (text: string) => text.replace(/"idempotency_key":"[0-9a-f-]{36}"/, '"idempotency_key":"<id>"');
const keyIn = (body: Buffer | string) => (JSON.parse(body.toString()) as { idempotency_key: string }).idempotency_key;

test("D1 D4: the handler writes intents and nothing else", async () => {
  await using program = startService([join(FOLDER, "decide-entries.ts")], env, process.execPath, FOLDER);
  const { code, stdout, stderr } = await program.ended;
  assert.equal(code, 0, stderr);
  assert.equal(stdout.trim(), sections[0]);
  assert.deepEqual(await deliveredTypes(), []);
});

test("D2: the relay of one intent alone delivers its type and is silent about the others", async () => {
  const { code, stdout, stderr } = await runCommand(["run", "--once", "--only", "SyncToPayroll"], env, FOLDER);
  assert.equal(code, 0, stderr + stdout);
  assert.deepEqual(await deliveredTypes(), ["SyncToPayroll", "SyncToPayroll"]);
  assert.doesNotMatch(stdout, /RelayMismatch|NotifyUserOfApproval/);
});

test("D1 D3 D4 D6: all relays in one process bring each intent to its target, with its key in metadata and body", async () => {
  const { code, stdout, stderr } = await runCommand(["run", "--once"], env, FOLDER);
  assert.equal(code, 0, stderr + stdout);
  const rows = await intents();
  assert.ok(
    rows.every(({ isDelivered }) => isDelivered),
    JSON.stringify(rows),
  );
  const notified = await readTopic(kafka.directBrokers, "user-notifications");
  const told = await takeAll(rabbit.url, "rejections");
  const lines = [
    ...notified.map(({ key, value }) => `user-notifications ${key} ${value}`).sort(),
    ...payroll.requests.map(({ url, headers, body }) => `${url} ${headers["partition-key"]} ${body}`).sort(),
    ...told.map(
      ({ fields, properties, content }) => `${fields.routingKey} ${properties.headers?.["partition-key"]} ${content}`,
    ),
  ];
  assert.equal(lines.map(withoutId).join("\n"), sections[1]?.trim());
  for (const record of notified) assert.equal(headerText(record, "event-id"), keyIn(record.value!));
  for (const { headers, body } of payroll.requests) assert.equal(headers["idempotency-key"], keyIn(body));
  for (const { properties, content } of told) assert.equal(properties.messageId, keyIn(content));
  const sent = [...notified.map(({ value }) => value!), ...payroll.requests.map(({ body }) => body)];
  const keys = [...sent, ...told.map(({ content }) => content)].map(keyIn);
  assert.deepEqual(keys.sort(), rows.map(({ id }) => id).sort());
  const relayed = stdout.split("\n").flatMap((line) => (line.includes('"IntentRelayed"') ? [JSON.parse(line)] : []));
  assert.deepEqual(relayed.map(({ eventType, target, attempt }) => [eventType, target, attempt]).sort(), [
    ["InformCallerOfRejection", "desk.rejections", 1],
    ["NotifyUserOfApproval", "user-notifications", 1],
    ["NotifyUserOfApproval", "user-notifications", 1],
  ]);
  for (const line of relayed) assert.ok(line.durationMs >= 0 && line.eventId.length === 36 && line.time !== undefined);
});

test("D2: the relay of one intent and the relay of all share that intent's pipeline, so that neither repeats the other", async () => {
  const { rows } = await database.query<{ name: string }>("select name from outbox_relay.pipelines order by name");
  assert.deepEqual(
    rows.map(({ name }) => name),
    ["inform-caller-of-rejection", "notify-user-of-approval", "sync-to-payroll"].map(
      (name) => `time_tracking.intents->${name}`,
    ),
  );
});

test("D4 D5 D6: delivered only after the acknowledgement; a failing target is tried by the schedule, then dead; the others go on", async () => {
  await database.query(`insert into time_tracking.intents (intent) values
    ('{"type":"SyncToPayroll","entryId":"entry-8","userId":"slow","hours":1}'),
    ('{"type":"SyncToPayroll","entryId":"entry-9","userId":"broken","hours":1}'),
    ('{"type":"SendFlowers"}')`);
  payroll.breaks("broken");
  const release = payroll.holds("slow");
  await using relay = startService(["run"], { ...env, PORT: String(await freePort()) }, undefined, FOLDER);
  const rowOf = async (entry: string) => {
    const { rows } = await database.query<{ id: string }>(
      "select id from time_tracking.intents where intent ->> 'entryId' = $1",
      [entry],
    );
    return (await intents()).find(({ id }) => id === rows[0]?.id)!;
  };
  await until("payroll has the request", () => payroll.requests.some(({ body }) => body.includes("entry-8")));
  assert.equal((await rowOf("entry-8")).isDelivered, false);
  release();
  await until("it is delivered", async () => (await rowOf("entry-8")).isDelivered);

  const dead = await relay.logged("it is dead", ({ event }) => event === "IntentDeadLettered");
  const broken = await rowOf("entry-9");
  assert.deepEqual([broken.isDelivered, broken.attempts], [false, 3]);
  assert.match(broken.error ?? "", /500/);
  assert.deepEqual(
    [dead.eventId, dead.eventType, dead.target, dead.attempt, dead.parks],
    [broken.id, "SyncToPayroll", "SyncToPayroll", 3, false],
  );
  const failed = relay.logs(({ event }) => event === "IntentRelayFailed");
  assert.deepEqual(
    failed.map(({ eventId, attempt, retryInMs }) => [eventId, attempt, retryInMs]),
    [
      [broken.id, 1, 50],
      [broken.id, 2, 100],
      [broken.id, 3, null],
    ],
  );
  for (const line of failed) assert.ok(Number(line.durationMs) >= 0 && /500/.test(String(line.reason)));

  const doctor = await runCommand(["doctor"], env, FOLDER);
  assert.match(
    doctor.stdout,
    /takers: Events wait in time_tracking\.intents that no running relay handles: SendFlowers \(1\)/,
  );
  assert.equal((await intents()).filter(({ isDelivered }) => !isDelivered).length, 2, "the dead one and the flowers");
});

test("D1: no file but a relay knows a broker, a topic or an address", () => {
  const files = readdirSync(FOLDER, { recursive: true, encoding: "utf8" }).filter((file) =>
    /\.(?:ts|sql|yaml)$/.test(file),
  );
  const isRelay = (file: string) => file.startsWith("relays/");
  assert.equal(files.filter(isRelay).length, 3);
  const names = /kafka|rabbit|amqp|https?:|exchange|topic|user-notifications|desk|payroll_url|\/hours/i;
  for (const file of files) assert.equal(names.test(textOf(file)), isRelay(file), file);
  for (const file of files.filter(isRelay)) assert.equal(textOf(file).match(/\btype: "/g)?.length, 1, file);
});
