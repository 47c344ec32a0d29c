import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { freePort } from "../servers/free-port.ts";
import { startRabbit } from "../servers/rabbitmq.ts";
import { overRabbit, takeAll } from "../servers/rabbitmq-reader.ts";
import { runCommand } from "./service-process.ts";
import { serverOfFile, stagesOn } from "./service-stage.ts";
import type { Stage } from "./stage.ts";

const stage = stagesOn(serverOfFile(), "worker_table", []);

const EXCHANGE = "waiting_room_events";
const COUNT = 400;
const POISON = 150;

test("C1 C2 C5 the worker's real table, which has no aggregate column, and its appsettings.json: the events arrive in the order of the table, and one that fails keeps nobody", async () => {
  await using rabbit = await startRabbit();
  await using it = await stage();
  await createTable(it);
  await overRabbit(rabbit.url, async (channel) => {
    await channel.assertExchange(EXCHANGE, "topic", { durable: true });
    await channel.assertQueue("room", { durable: true });
    await channel.bindQueue("room", EXCHANGE, "PatientArrived");
    await channel.assertQueue("full", { durable: true, maxLength: 0, overflow: "reject-publish" });
    await channel.bindQueue("full", EXCHANGE, "PatientLost");
  });
  const folder = mkdtempSync(join(tmpdir(), "outbox-relay-worker-"));
  try {
    writeFileSync(join(folder, "appsettings.json"), settingsOf(it, rabbit.port));
    writeFileSync(join(folder, "appsettings.Production.json"), `{ "RabbitMq": { "HostName": "127.0.0.1" } }`);
    const { code, stderr } = await runCommand(["run", "--once"], { PORT: String(await freePort()) }, folder);
    assert.equal(code, 5, stderr);
    assert.match(stderr, new RegExp(`^${COUNT - 1} events delivered`, "m"));
  } finally {
    rmSync(folder, { recursive: true });
  }
  const messages = await takeAll(rabbit.url, "room");
  const numbers = messages.map(({ content }) => (JSON.parse(content.toString()) as { number: number }).number);
  const written = Array.from({ length: COUNT }, (_, at) => at + 1);
  assert.deepEqual(
    numbers,
    written.filter((number) => number !== POISON),
  );
  const { contentType, correlationId, headers } = messages[0]!.properties;
  assert.deepEqual(
    [contentType, correlationId, headers?.["causation-id"], headers?.["partition-key"]],
    ["application/vnd.room+json", "correlation-1", "command-1", undefined],
  );
  const [poison] = await it.sql(
    `select status, attempts, next_attempt_at > now() + interval '20 s' as waits from waiting_room_outbox where event_name = 'PatientLost'`,
  );
  assert.deepEqual(poison, { status: "Pending", attempts: 1, waits: true });
});

async function createTable({ role, sql }: Stage): Promise<void> {
  await sql(`
    create table public.waiting_room_outbox (outbox_id uuid primary key default gen_random_uuid(),
      event_id uuid not null unique, event_name text not null, occurred_at timestamptz not null, correlation_id text not null,
      causation_id text not null, content_type text, payload jsonb not null, status text not null, attempts int not null,
      next_attempt_at timestamptz, last_error text);
    grant select, update on public.waiting_room_outbox to ${role};
    insert into public.waiting_room_outbox (event_id, event_name, occurred_at, correlation_id, causation_id, content_type,
      payload, status, attempts)
    select gen_random_uuid(), case when n = ${POISON} then 'PatientLost' else 'PatientArrived' end,
      timestamptz '2026-01-01' + n * interval '1 ms', 'correlation-' || n, 'command-' || n, 'application/vnd.room+json',
      jsonb_build_object('number', n), 'Pending', 0
    from generate_series(1, ${COUNT}) n order by random()`);
}

/** The file as the worker has it, with the server of the test; its host is in the file of the environment. */
function settingsOf({ relayUrl }: Stage, rabbitPort: number): string {
  const { hostname, port, pathname, username, password } = new URL(relayUrl);
  return JSON.stringify({
    Logging: { LogLevel: { Default: "Information" } },
    OutboxDispatcher: {
      PollingIntervalSeconds: 5,
      BatchSize: 100,
      MaxRetryAttempts: 5,
      BaseRetryDelaySeconds: 30,
      MaxRetryDelaySeconds: 3600,
    },
    ConnectionStrings: {
      EventStore: `Host=${hostname};Port=${port};Database=${pathname.slice(1)};Username=${username};Password=${password}`,
    },
    RabbitMq: { HostName: "rabbitmq", Port: rabbitPort, ExchangeName: EXCHANGE },
  });
}
