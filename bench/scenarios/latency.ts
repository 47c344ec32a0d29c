import { until } from "../../test/servers/until.ts";
import { type BenchServers, startBenchServers } from "../bench-servers.ts";
import { atMost, type Figure, measured, type Scenario } from "../figure.ts";
import { inspectTopic, watchArrivals } from "../kafka-consumer.ts";
import { fillTable } from "../outbox-tables.ts";
import type { KafkaTarget } from "../relay-order.ts";
import { startRelay } from "../relay-run.ts";
import { writeSteadily } from "../steady-writer.ts";

const EVENTS_PER_SECOND = 1_000;
const MEASURED_SECONDS = 25;
/** Compilers, connections and caches are warm then. */
const WARM_UP_SECONDS = 5;
const GOALS = { "at-least-once": { p50: 5, p99: 25 }, "exactly-once": { p50: 20, p99: 60 } } as const;

/**
 * How long after its insert an event is at the consumer, at an even 1,000 events/s with one event per transaction. The
 * time starts inside the insert statement and ends when a consumer that reads only what is committed has printed the
 * record; so it holds the writer's commit, and nothing is taken off.
 */
export const latency: Scenario = async (options) => {
  await using servers = await startBenchServers();
  const figures: Figure[] = [];
  for (const delivery of ["at-least-once", "exactly-once"] as const) {
    if (!delivery.includes(options.only)) continue;
    options.say(`measuring: ${delivery}`);
    const seconds = WARM_UP_SECONDS + MEASURED_SECONDS * options.scale;
    const { latenciesMs, commitMs, twice } = await measure(servers, delivery, seconds);
    const goals = GOALS[delivery];
    figures.push(
      measured(`${delivery}: events`, latenciesMs.length, "events"),
      atMost(`${delivery}: insert to consumer, p50`, percentile(latenciesMs, 50), "ms", goals.p50),
      atMost(`${delivery}: insert to consumer, p99`, percentile(latenciesMs, 99), "ms", goals.p99),
      measured(`${delivery}: insert to consumer, longest`, percentile(latenciesMs, 100), "ms"),
      delivery === "exactly-once"
        ? atMost(`${delivery}: arrived twice`, twice, "events", 0)
        : measured(`${delivery}: arrived twice`, twice, "events"),
      measured(`${delivery}: the writer's own insert and commit, p50`, percentile(commitMs, 50), "ms"),
    );
  }
  return figures;
};

async function measure(servers: BenchServers, delivery: KafkaTarget["delivery"], seconds: number) {
  const { postgres, kafka } = servers;
  await fillTable(postgres, "flag", { rows: 1, payloadBytes: 200, keys: 1 });
  await using topic = await servers.freshTopic();
  const latencies = new Map<number, number>();
  await using _consumer = watchArrivals(kafka.brokers, topic.name, (value, atMs) => {
    const event = JSON.parse(value) as { n: number; at?: number };
    // The row that was there before has no time; of duplicates the first one counts.
    if (event.at !== undefined && !latencies.has(event.n)) latencies.set(event.n, atMs - event.at);
  });
  const target = { brokers: kafka.brokers, topic: topic.name, service: topic.name, delivery };
  const relay = await startRelay(postgres, { kind: "flag", until: "told to stop", kafka: target });
  const written = writeSteadily(postgres.url, EVENTS_PER_SECOND, seconds);
  const all = written.then((commitMs) =>
    until("all events are at the consumer", () => latencies.size === commitMs.length),
  );
  try {
    await Promise.race([all, relay.result]);
  } finally {
    relay.stop();
    await relay.result;
  }
  const commitMs = await written;
  const { records, events } = await inspectTopic(kafka.brokers, topic.name, "event-id");
  if (events !== commitMs.length + 1)
    throw new Error(`${events} of ${commitMs.length + 1} events: no figure can be given`);
  const isMeasured = ([n]: [number, number]) => n >= WARM_UP_SECONDS * EVENTS_PER_SECOND;
  return { commitMs, twice: records - events, latenciesMs: [...latencies].filter(isMeasured).map(([, ms]) => ms) };
}

function percentile(values: readonly number[], percent: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil((percent / 100) * sorted.length) - 1)] ?? Number.NaN;
}
