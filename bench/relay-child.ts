import { once } from "node:events";
import { setTimeout as pauseMs } from "node:timers/promises";
import pg from "pg";
import { policyOf } from "../src/config/sources/presets.ts";
import { systemClock } from "../src/core/clock.ts";
import { delivered } from "../src/core/outcome.ts";
import type { Publisher } from "../src/ports/publisher.ts";
import type { QueueSource } from "../src/ports/queue-store.ts";
import { openDatabase } from "../src/postgres/pool.ts";
import { kafkaPublisher } from "../src/publishers/kafka/kafka-publisher.ts";
import { createRelay } from "../src/relay/relay.ts";
import { managedOutboxSource, walSource } from "../src/sources/postgres/log-sources.ts";
import { openOutboxSource } from "../src/sources/postgres/openoutbox/openoutbox-source.ts";
import { postgresSource } from "../src/sources/postgres/postgres-source.ts";
import { BudgetedRecorder } from "../src/telemetry/attempts/attempt-recorder.ts";
import { postgresAttemptStore } from "../src/telemetry/attempts/postgres-attempt-store.ts";
import { redactor } from "../src/telemetry/logs/redaction.ts";
import type { RelayRun, SourceKind } from "./relay-order.ts";

const {
  url,
  table,
  kind,
  wal,
  until,
  kafka,
  telemetry: told,
  recordPerSecond,
} = JSON.parse(process.env.BENCH ?? "{}") as RelayRun & {
  url: string;
  table: string;
};

// The bench holds the other end: without it there is nothing left to measure.
const toldToStop = once(process.stdin.resume(), "end");
if (until !== "told to stop") toldToStop.then(() => process.exit(1));

let count = 0;
const atOnce: Publisher = {
  name: "at once",
  capabilities: { keyOrderInBatch: true, deduplicates: false },
  publish: async (batch, report) => {
    for (let index = 0; index < batch.length; index += 1) report(index, delivered);
    count += batch.length;
  },
  close: async () => {},
};

const NOTHING_SET = {
  pollIntervalMs: undefined,
  batchSize: undefined,
  onExhausted: undefined,
  retry: {},
  schedule: undefined,
};

const publisher = kafka ? kafkaPublisher({ ...kafka, brokers: [kafka.brokers] }) : atOnce;
// A figure for one promise must never be taken under another.
if ((kafka?.delivery === "exactly-once") !== (publisher.transactions !== undefined)) {
  throw new Error(
    `the publisher ${publisher.transactions ? "has" : "has no"} transactions, asked for ${kafka?.delivery}`,
  );
}
const database = openDatabase({ url });
const source = sourceOf(kind);
const telemetry = told === undefined ? null : await (await import("./relay-telemetry.ts")).openTelemetry(told);
const recorder = recordPerSecond === undefined ? null : openRecorder(recordPerSecond);
const relay = createRelay({
  ...(recorder === null ? {} : { recorder }),
  sources: [telemetry?.source(source, "out") ?? source],
  destinations: { out: telemetry?.publisher(publisher) ?? publisher },
  ...(kafka ? { routes: [{ destination: "out", topic: () => kafka.topic }] } : {}),
  limits: {
    // As the service has it for a table of this kind.
    batchSize: policyOf(kind, NOTHING_SET).batchSize,
    // As many as asked for, in every lane at once.
    ...(kafka?.transactionSize
      ? { transactionSize: kafka.transactionSize, inFlightEventsMax: Math.max(10_000, 4 * kafka.transactionSize) }
      : {}),
  },
});
const TROUBLES = [
  "SourceBroken",
  "InstanceLost",
  "ChoreFailed",
  "LaneFailed",
  "CircuitOpened",
  "IntentDeadLettered",
] as const;
for (const name of TROUBLES) {
  relay.on(name, (event) => void process.stderr.write(`${JSON.stringify(event, text)}\n`));
}

telemetry?.listen(relay);

let startedMs = performance.now();
let cpu = process.cpuUsage();
const startedAtMs = performance.timeOrigin + startedMs;
const report = until === "told to stop" ? null : await relay.drain();
if (report === null) await relay.start();
else if (report.deadLetters + report.retrying + report.unreachable.length + report.broken.length > 0) {
  process.stderr.write(`not everything was delivered: ${JSON.stringify(report)}\n`);
}
if (until === "told to stop") await toldToStop;
if (until === "idle for 20 s") {
  // The pauses grow for a while after the last event.
  await pauseMs(3_000);
  await resetStatements();
  startedMs = performance.now();
  cpu = process.cpuUsage();
  await pauseMs(20_000);
}
const ms = performance.now() - startedMs;
const statements = until === "idle for 20 s" ? await countStatements() : null;
const used = process.cpuUsage(cpu);
const cpuPercent = ((used.user + used.system) / 1_000 / ms) * 100;
await relay.stop();
await telemetry?.stop();
await recorder?.stop();
await database.close();
process.stdin.destroy();
// The kernel's own mark of the peak, in KiB: asking again and again would cost CPU that is not the relay's.
const rssMb = process.resourceUsage().maxRSS / 2 ** 10;
process.stdout.write(JSON.stringify({ delivered: count, startedAtMs, ms, rssMb, cpuPercent, statements }));

/** As the service has it. */
function openRecorder(deliveredPerSecond: number): BudgetedRecorder {
  const own = openDatabase({ url, applicationName: "recorder", connectionsMax: 2 });
  const redact = redactor(["a-password", "another-password"]);
  const redactHeader = (_: string, value: string) => value;
  const store = postgresAttemptStore({ database: own, instance: "bench", redact, redactHeader });
  return new BudgetedRecorder({ store, clock: systemClock, deliveredPerSecond, retentionMs: 7 * 86_400_000 });
}

function sourceOf(kind: SourceKind): QueueSource {
  if (kind === "flag") return postgresSource({ database, table });
  if (kind === "openoutbox") return openOutboxSource({ database, table });
  if (kind === "managed") return managedOutboxSource({ database, table });
  return walSource({ database, table, preset: "debezium", ...wal });
}

/** Only what is sent while idle counts. */
async function resetStatements(): Promise<void> {
  await asSuperuser("select pg_stat_statements_reset()");
}

/** Heartbeat and reaping belong to the process, whatever the number of its sources. */
async function countStatements(): Promise<{ all: number; source: number }> {
  const [row] = await asSuperuser<{ all: string; process: string }>(
    `select coalesce(sum(s.calls), 0) as all,
       coalesce(sum(s.calls) filter (where s.query ilike '%instances%' and s.query not ilike '%lanes%'), 0) as process
     from pg_stat_statements s join pg_roles r on r.oid = s.userid where r.rolname = current_setting('bench.role')`,
  );
  return { all: Number(row?.all), source: Number(row?.all) - Number(row?.process) };
}

async function asSuperuser<Row extends pg.QueryResultRow>(sql: string): Promise<Row[]> {
  const target = new URL(url);
  const role = target.username;
  target.username = "postgres";
  const client = new pg.Client({ connectionString: target.href, options: `-c bench.role=${role}` });
  await client.connect();
  const { rows } = await client.query<Row>(sql);
  await client.end();
  return rows;
}

function text(_: string, value: unknown): unknown {
  return typeof value === "bigint" ? String(value) : value;
}
