import assert from "node:assert/strict";
import { test } from "node:test";
import { freePort } from "../servers/free-port.ts";
import { startRabbit } from "../servers/rabbitmq.ts";
import { overRabbit, takeAll } from "../servers/rabbitmq-reader.ts";
import { until } from "../servers/until.ts";
import { runCommand, startService } from "./service-process.ts";
import { serverOfFile, stagesOn } from "./service-stage.ts";
import type { Stage } from "./stage.ts";

const stage = stagesOn(serverOfFile(), "worker", []);

const EXCHANGE = "waiting_room_events";
const CORRELATION = "6f1c2c9e-0000-4000-8000-000000000001";

test("C1 C2 C3 C4 C5 C6 the worker's own table and variables: poison is isolated after five retries, the rest goes on, a person brings it back", async () => {
  await using rabbit = await startRabbit();
  await using it = await stage();
  await createTable(it);
  await declareQueues(rabbit.url);
  // Written in another order than they occurred, and the first one twice.
  await write(it, 1, "PatientCalled", "p-1", 30);
  await write(it, 2, "PatientArrived", "p-1", 10);
  await write(it, 2, "PatientCalled", "p-1", 20);
  await write(it, 3, "PatientLost", "p-2", 10);
  await write(it, 4, "PatientArrived", "p-2", 20);
  await write(it, 5, "PatientArrived", "p-3", 10);

  const env = {
    ConnectionStrings__EventStore: dotnet(it.relayUrl),
    OUTBOX_TABLE: "public.event_outbox",
    OutboxDispatcher__PollingIntervalSeconds: "1",
    OutboxDispatcher__BatchSize: "100",
    OutboxDispatcher__MaxRetryAttempts: "5",
    RETRY_INITIAL_DELAY_MS: "20ms",
    RabbitMq__HostName: "127.0.0.1",
    RabbitMq__Port: String(rabbit.port),
    RabbitMq__ExchangeName: EXCHANGE,
    LOG_EVENTS: "all",
    PORT: String(await freePort()),
  };
  await using running = startService(["run"], env);
  await until("the poison is isolated", async () => (await rowOf(it, 3)).status === "Failed");
  assert.deepEqual(await rowOf(it, 3), { status: "Failed", attempts: 6, isolated: true });
  await until(
    "the others are dispatched",
    async () => (await statuses(it)) === "12:Dispatched 3:Failed 4:Pending 5:Dispatched",
  );

  // The row is written before its line is: the log comes by a pipe, and later.
  const deadLines = () => running.logs(({ event, eventId }) => event === "IntentDeadLettered" && eventId === idOf(3));
  await until("its dead letter is logged", async () => deadLines().length > 0);
  const attempts = running.logs(({ event, eventId }) => event === "IntentRelayFailed" && eventId === idOf(3));
  assert.deepEqual(
    attempts.map(({ attempt }) => attempt),
    [1, 2, 3, 4, 5, 6],
  );
  const [dead] = deadLines();
  assert.deepEqual([dead?.level, dead?.correlationId], ["error", CORRELATION]);
  assert.match(JSON.stringify(dead), /PatientLost/);

  const before = await takeAll(rabbit.url, "room");
  assert.deepEqual(before.map(keyAndType).sort(), ["p-1 PatientArrived", "p-1 PatientCalled", "p-3 PatientArrived"]);
  assert.deepEqual(
    before.map(keyAndType).filter((name) => name.startsWith("p-1")),
    ["p-1 PatientArrived", "p-1 PatientCalled"],
  );
  const [first] = before;
  const { correlationId, deliveryMode, timestamp } = first!.properties;
  assert.deepEqual([correlationId, deliveryMode, typeof timestamp], [CORRELATION, 2, "number"]);

  await overRabbit(rabbit.url, async (channel) => {
    await channel.deleteQueue("full");
    await channel.bindQueue("room", EXCHANGE, "PatientLost");
  });
  const replayed = await runCommand(["dlq", "replay", idOf(3), "--yes", "--reason", "its queue has room now"], env);
  assert.equal(replayed.code, 0, replayed.stderr);
  await until("all are dispatched", async () => !/Failed|Pending/.test(await statuses(it)));
  assert.deepEqual((await takeAll(rabbit.url, "room")).map(keyAndType), ["p-2 PatientLost", "p-2 PatientArrived"]);
  running.kill("SIGTERM");
  assert.equal((await running.ended).code, 0);
});

/** One queue takes who comes and who is called; the other, for who is lost, has no room at all. */
async function declareQueues(url: string): Promise<void> {
  await overRabbit(url, async (channel) => {
    await channel.assertExchange(EXCHANGE, "topic", { durable: true });
    await channel.assertQueue("room", { durable: true });
    await channel.bindQueue("room", EXCHANGE, "PatientArrived");
    await channel.bindQueue("room", EXCHANGE, "PatientCalled");
    await channel.assertQueue("full", { durable: true, maxLength: 0, overflow: "reject-publish" });
    await channel.bindQueue("full", EXCHANGE, "PatientLost");
  });
}

async function createTable({ role, sql }: Stage): Promise<void> {
  await sql(`
    create table public.event_outbox (event_id uuid primary key, event_name text not null, aggregate_id text not null,
      payload jsonb not null, correlation_id text, occurred_at timestamptz not null, status text not null default 'Pending',
      attempts int not null default 0, next_attempt_at timestamptz, last_error text);
    grant select, update on public.event_outbox to ${role}`);
}

function idOf(number: number): string {
  return `00000000-0000-4000-8000-${String(number).padStart(12, "0")}`;
}

async function write({ sql }: Stage, number: number, name: string, key: string, second: number): Promise<void> {
  await sql(
    `insert into public.event_outbox (event_id, event_name, aggregate_id, payload, correlation_id, occurred_at)
     values ($1, $2, $3, '{}', $4, timestamptz '2026-01-01' + $5 * interval '1 s') on conflict do nothing`,
    [idOf(number), name, key, CORRELATION, second],
  );
}

async function rowOf({ sql }: Stage, number: number) {
  const [row] = await sql<{ status: string; attempts: number; isolated: boolean }>(
    `select status, attempts, next_attempt_at between now() + interval '364 days' and now() + interval '366 days'
       as isolated from public.event_outbox where event_id = $1`,
    [idOf(number)],
  );
  return row!;
}

/** `12:Dispatched 3:Failed`: the last digits of the ids by status. */
async function statuses({ sql }: Stage): Promise<string> {
  const rows = await sql<{ id: string; status: string }>("select event_id as id, status from event_outbox order by 1");
  return rows
    .map(({ id, status }, at) => `${id.at(-1)}${status === rows[at + 1]?.status ? "" : `:${status} `}`)
    .join("")
    .trim();
}

function keyAndType({ properties }: { properties: { headers: Record<string, unknown> | undefined; type: unknown } }) {
  return `${properties.headers?.["partition-key"]} ${properties.type}`;
}

function dotnet(address: string): string {
  const { hostname, port, pathname, username, password } = new URL(address);
  return `Host=${hostname};Port=${port};Database=${pathname.slice(1)};Username=${username};Password=${password}`;
}
