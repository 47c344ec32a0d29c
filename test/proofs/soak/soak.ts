import { readFileSync } from "node:fs";
import { setTimeout as pauseMs } from "node:timers/promises";
import pg from "pg";
import { provedOutbox } from "../../chaos/exactly-once/proved-outbox.ts";
import { startService } from "../../e2e/service-process.ts";
import { openStage } from "../../e2e/stage.ts";
import { freePort } from "../../servers/free-port.ts";
import { type KafkaServer, startKafka } from "../../servers/kafka.ts";
import { followLines } from "../../servers/kafka-reader.ts";
import { startPostgres } from "../../servers/postgres.ts";
import { until } from "../../servers/until.ts";
import { guarded } from "../guard.ts";
import { endInGoodOrder, SOURCE_SETTINGS } from "../service-scene.ts";
import type { MemorySample } from "./memory-curve.ts";
import { Sequences } from "./sequences.ts";

export interface SoakOptions {
  readonly events: number;
  readonly source: "managed" | "flag";
  /** Kafka is stopped for so long when half of the events are written. */
  readonly outageSeconds: number;
  /** Events a second while Kafka is away. */
  readonly outageRate: number;
  readonly log: (line: string) => void;
}

export interface SoakReport {
  readonly written: number;
  readonly read: number;
  readonly lost: number;
  readonly duplicates: number;
  readonly outOfOrder: number;
  /** Dead letters and failing events at the end. */
  readonly holds: number;
  readonly samples: readonly MemorySample[];
  readonly seconds: number;
  readonly outage: OutageFigures | null;
}

export interface OutageFigures {
  readonly backlog: number;
  /** What the health said after a while. */
  readonly health: string;
  readonly drainSeconds: number;
}

const TOPIC = "soak.event";
const PARTITIONS = 4;
/** One transaction writes one event of each key. */
const KEYS = Array.from({ length: 1_000 }, (_, n) => `k${n}`);
/** Written and not yet read by the consumer. Enough to keep the relay busy, too few to be a backlog. */
const AHEAD_MAX = 20_000;
const SAMPLE_EVERY_MS = 1_000;
const LOG_EVERY_MS = 10_000;
/** Payloads of about 200 bytes: the number of the event and a filler. */
const FILLER = "x".repeat(190);

/** Ten million events through one relay process; what arrives is counted while it arrives. */
export async function soak(options: SoakOptions): Promise<SoakReport> {
  const startedMs = performance.now();
  await using started = new AsyncDisposableStack();
  const kafka = started.use(await startKafka({ onDisk: true, fast: true }));
  await kafka.createTopic(TOPIC, { partitions: PARTITIONS });
  const server = started.use(await startPostgres({ version: 18, onDisk: true, flags: ["-c", "max_wal_size=1GB"] }));
  const outbox = provedOutbox(options.source);
  const stage = started.use(await openStage(server, { database: "soak", tables: outbox.flagTables.slice(0, 1) }));
  await outbox.create(stage);
  const seen = new Sequences();
  started.use(
    await followLines(kafka.directBrokers, TOPIC, ["-f", "%k %s\\n"], (line) => {
      const [key = "", payload = ""] = line.split(" ");
      seen.see(key, Number.parseInt(payload.slice(1), 10));
    }),
  );
  const relay = started.use(
    guarded(
      startService(["run"], {
        ...{ DATABASE_URL: stage.relayUrl, OUTBOX_DESTINATION: `kafka://${kafka.brokers}` },
        ...(options.source === "flag" ? { OUTBOX_SCHEMAS: "orders" } : SOURCE_SETTINGS[options.source]),
        PORT: String(await freePort()),
      }),
    ),
  );
  await relay.becomes("healthy");
  const writer = new SoakWriter(stage.url, options.source);
  started.defer(() => writer.close());
  const watch = watchProcess(
    relay.pid,
    () => seen.count / options.events,
    options.log,
    () => ({
      ...{ written: writer.written, read: seen.count },
    }),
  );
  started.defer(watch.stop);
  await writer.writeUntil(options.events / 2, () => seen.count);
  const outage = options.outageSeconds > 0 ? await endure(options, { kafka, relay, writer, seen }) : null;
  await writer.writeUntil(options.events, () => seen.count);
  await until("all events are read", () => seen.count >= writer.written, 600_000).catch(() => {});
  watch.stop();
  const [held] = await stage.sql<{ count: number }>(
    "select ((select count(*) from outbox_relay.holds) + (select count(*) from outbox_relay.failed_events))::int as count",
  );
  await endInGoodOrder([relay]);
  return {
    ...{ written: writer.written, read: seen.count, lost: seen.lost(KEYS, writer.written / KEYS.length) },
    ...{ duplicates: seen.duplicates, outOfOrder: seen.outOfOrder, holds: held?.count ?? 0, outage },
    ...{ samples: watch.samples, seconds: (performance.now() - startedMs) / 1_000 },
  };
}

/** Transactions of one event for each key, one after the other: the number of an event is that of its transaction. */
class SoakWriter {
  written = 0;
  readonly #client: pg.Client;
  readonly #sql: string;
  #isConnected = false;

  constructor(url: string, source: SoakOptions["source"]) {
    this.#client = new pg.Client({ connectionString: url });
    const columns =
      source === "managed"
        ? "shop.outbox (event_id, event_key, event_type, payload)"
        : "orders.outbox (id, aggregate_id, event_type, payload)";
    const payload = source === "managed" ? "$1" : "$1::json";
    this.#sql = `insert into ${columns} select gen_random_uuid(), key, '${TOPIC}', ${payload} from unnest($2::text[]) key`;
  }

  /** Never more than a little ahead of the reader. */
  async writeUntil(events: number, readCount: () => number): Promise<void> {
    while (this.written < events) {
      if (this.written - readCount() < AHEAD_MAX) await this.#write();
      else await pauseMs(5);
    }
  }

  /** Whatever the reader does. */
  async writeFor(seconds: number, rate: number): Promise<void> {
    const [startedMs, before] = [performance.now(), this.written];
    for (let elapsed = 0; elapsed < seconds; elapsed = (performance.now() - startedMs) / 1_000) {
      if (this.written - before < elapsed * rate) await this.#write();
      else await pauseMs(50);
    }
  }

  async #write(): Promise<void> {
    if (!this.#isConnected) await this.#client.connect();
    this.#isConnected = true;
    await this.#client.query(this.#sql, [`"${this.written / KEYS.length + 1} ${FILLER}"`, KEYS]);
    this.written += KEYS.length;
  }

  async close(): Promise<void> {
    if (this.#isConnected) await this.#client.end();
  }
}

interface Cast {
  readonly kafka: KafkaServer;
  readonly relay: ReturnType<typeof startService>;
  readonly writer: SoakWriter;
  readonly seen: Sequences;
}

/** Kafka is gone and the application goes on writing. Nobody helps afterwards. */
async function endure({ outageSeconds, outageRate, log }: SoakOptions, cast: Cast): Promise<OutageFigures> {
  log(`stop Kafka for ${outageSeconds} s`);
  await cast.kafka.stop();
  await cast.writer.writeFor(outageSeconds, outageRate);
  const { status, problems } = (await cast.relay.get("/health")).json();
  const health = `${status}: ${JSON.stringify(problems)}`;
  const backlog = cast.writer.written - cast.seen.count;
  log(`start Kafka again, ${backlog} events wait; the health says ${health}`);
  await cast.kafka.restart();
  const backMs = performance.now();
  const target = cast.writer.written;
  await until("the backlog is read", () => cast.seen.count >= target, 3_600_000);
  const drainSeconds = (performance.now() - backMs) / 1_000;
  log(`the backlog is read after ${drainSeconds.toFixed(0)} s`);
  return { backlog, health, drainSeconds };
}

function watchProcess(
  pid: number,
  progress: () => number,
  log: (line: string) => void,
  counts: () => { readonly written: number; readonly read: number },
) {
  const startedMs = performance.now();
  const samples: MemorySample[] = [];
  let toldMs = startedMs;
  const timer = setInterval(() => {
    const mb = residentMb(pid);
    if (mb !== null) samples.push({ atSeconds: (performance.now() - startedMs) / 1_000, progress: progress(), mb });
    if (performance.now() - toldMs < LOG_EVERY_MS) return;
    toldMs = performance.now();
    const { written, read } = counts();
    log(`${(progress() * 100).toFixed(1)} %: ${written} written, ${read} read, ${mb?.toFixed(0)} MB`);
  }, SAMPLE_EVERY_MS);
  return { samples, stop: () => clearInterval(timer) };
}

function residentMb(pid: number): number | null {
  try {
    const [, kilobytes] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
    return kilobytes === undefined ? null : Number(kilobytes) / 1_024;
  } catch {
    return null; // it has ended
  }
}
