import type { PostgresServer } from "../../test/servers/postgres.ts";
import { until } from "../../test/servers/until.ts";
import { type BenchServers, startBenchServers } from "../bench-servers.ts";
import { atMost, type Figure, measured, type Scenario } from "../figure.ts";
import { inspectTopic, watchArrivals } from "../kafka-consumer.ts";
import { type FillOptions, fillTable } from "../outbox-tables.ts";
import type { KafkaTarget, SourceKind } from "../relay-order.ts";
import { startRelay } from "../relay-run.ts";
import { type WrittenEvent, writeSteadily } from "../steady-writer.ts";

const EVENTS_PER_SECOND = 1_000;
const MEASURED_SECONDS = 25;
/**
 * A fresh broker compiles for about a minute, and takes a core for it on which everything else waits. Rows that were
 * drained before are what a relay in service has behind it: dead entries in the index, old statistics.
 */
const WARM_UP = { drainedEvents: 300_000, seconds: 60 };
const GOALS = { "at-least-once": { p50: 5, p99: 25 }, "exactly-once": { p50: 20, p99: 60 } } as const;

/**
 * How long after its commit an event is at the consumer, at an even 1,000 events/s with one event per transaction. The
 * time starts when the writer has the answer to its commit and ends when a consumer that reads only what is committed
 * has printed the record. The time from before the insert is shown too.
 */
export const latency: Scenario = async (options) => {
  await using servers = await startBenchServers();
  const figures: Figure[] = [];
  for (const delivery of ["at-least-once", "exactly-once"] as const) {
    if (!delivery.includes(options.only)) continue;
    options.say(`measuring: ${delivery}`);
    figures.push(...(await latencyOf(servers, FLAG, delivery, options.scale)));
  }
  return figures;
};

/** A table with its way to be filled and to be written to. */
export interface WrittenTable {
  readonly kind: SourceKind;
  fill(postgres: PostgresServer, options: FillOptions): Promise<void>;
  readonly insert?: string;
}

const FLAG: WrittenTable = { kind: "flag", fill: (postgres, options) => fillTable(postgres, "flag", options) };

export async function latencyOf(
  servers: Omit<BenchServers, keyof AsyncDisposable>,
  table: WrittenTable,
  delivery: KafkaTarget["delivery"],
  scale: number,
): Promise<Figure[]> {
  const { events, twice } = await measure(servers, table, delivery, MEASURED_SECONDS * scale);
  const goals = GOALS[delivery];
  const afterCommit = events.map(({ arrivedMs, committedMs }) => arrivedMs - committedMs);
  const afterInsert = events.map(({ arrivedMs, sentMs }) => arrivedMs - sentMs);
  return [
    measured(`${delivery}: events`, events.length, "events"),
    atMost(`${delivery}: commit to consumer, p50`, percentile(afterCommit, 50), "ms", goals.p50),
    atMost(`${delivery}: commit to consumer, p99`, percentile(afterCommit, 99), "ms", goals.p99),
    measured(`${delivery}: commit to consumer, longest`, percentile(afterCommit, 100), "ms"),
    measured(`${delivery}: insert to consumer, p50`, percentile(afterInsert, 50), "ms"),
    measured(`${delivery}: insert to consumer, p99`, percentile(afterInsert, 99), "ms"),
    delivery === "exactly-once"
      ? atMost(`${delivery}: arrived twice`, twice, "events", 0)
      : measured(`${delivery}: arrived twice`, twice, "events"),
  ];
}

async function measure(
  servers: Omit<BenchServers, keyof AsyncDisposable>,
  table: WrittenTable,
  delivery: KafkaTarget["delivery"],
  seconds: number,
) {
  const { postgres, kafka } = servers;
  await table.fill(postgres, { rows: WARM_UP.drainedEvents, payloadBytes: 200, keys: 1_000 });
  await using topic = await servers.freshTopic();
  const arrivals = new ArrivalTimes();
  await using _consumer = watchArrivals(kafka.brokers, topic.name, (value, atMs) => arrivals.add(value, atMs));
  const target = { brokers: kafka.brokers, topic: topic.name, service: topic.name, delivery };
  const relay = await startRelay(postgres, { kind: table.kind, until: "told to stop", kafka: target });
  const work = async () => {
    await until("the rows before are drained", () => arrivals.records >= WARM_UP.drainedEvents, 120_000);
    arrivals.begin();
    const written = await writeSteadily(postgres.url, EVENTS_PER_SECOND, WARM_UP.seconds + seconds, table.insert);
    await until("all events are at the consumer", () => arrivals.firstMs.size === written.length);
    return written;
  };
  let written: WrittenEvent[] | undefined;
  try {
    written = await Promise.race([work(), relay.result.then(() => undefined)]);
  } finally {
    relay.stop();
    await relay.result;
  }
  if (written === undefined) throw new Error("the relay ended before the writer: no figure can be given");
  const wanted = written.length + WARM_UP.drainedEvents;
  const { records, events } = await inspectTopic(kafka.brokers, topic.name, "event-id");
  if (events !== wanted) throw new Error(`${events} of ${wanted} events: no figure can be given`);
  const timed = written.map((event, n) => ({ ...event, arrivedMs: arrivals.firstMs.get(n)! }));
  return { events: timed.slice(WARM_UP.seconds * EVENTS_PER_SECOND), twice: records - events };
}

/** When each numbered event reached the consumer; of duplicates the first one counts. */
class ArrivalTimes {
  readonly firstMs = new Map<number, number>();
  records = 0;
  #isTiming = false;

  /** What comes from now on is timed. */
  begin(): void {
    this.#isTiming = true;
  }

  add(value: string, atMs: number): void {
    this.records += 1;
    if (!this.#isTiming) return;
    const { n } = JSON.parse(value) as { n: number };
    if (!this.firstMs.has(n)) this.firstMs.set(n, atMs);
  }
}

function percentile(values: readonly number[], percent: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil((percent / 100) * sorted.length) - 1)] ?? Number.NaN;
}
