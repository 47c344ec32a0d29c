import { type BenchServers, startBenchServers } from "../bench-servers.ts";
import { type CpuTimes, countCpu, cpuFigures } from "../cpu-time.ts";
import { atLeast, atMost, type Figure, measured, type Scenario, type ScenarioOptions } from "../figure.ts";
import { countArrivals, inspectTopic, requireEachOnce } from "../kafka-consumer.ts";
import { measureParts } from "../measure-parts.ts";
import { type FillOptions, fillTable } from "../outbox-tables.ts";
import { messagesOf, rawSend } from "../raw-kafka.ts";
import { rawPostgres } from "../raw-postgres.ts";
import type { KafkaTarget, RelayRun } from "../relay-order.ts";
import { runRelay } from "../relay-run.ts";
import { drainBesidePeers } from "./drain-peers.ts";

/** So many that the first second, in which a fresh process is slow, is a small part of it. */
const ROWS = 500_000;
const KEYS = 20_000;
const ROUNDS = 2;
/** Sends on the wire at once; which is best depends on the machine. */
const RAW_SENDS = [2, 4];
const TRANSACTION_SIZES = [250, 1_000, 5_000];

type Stage = ScenarioOptions & Pick<BenchServers, "postgres" | "kafka" | "freshTopic">;

/** What one way of delivery took, in milliseconds until the last event was at the consumer, and its memory. */
export interface Delivered {
  readonly ms: number;
  readonly rssMb: number;
  readonly cpu: CpuTimes;
}

/** How fast the relay carries a flag table into Kafka, against what each end can do by itself in the same run. */
export const drainKafka: Scenario = async (options) => {
  await using servers = await startBenchServers();
  const { postgres, kafka, freshTopic } = servers;
  const stage = { ...options, postgres, kafka, freshTopic };
  return await measureParts(options, {
    "200 B": () => drain(stage, 200),
    "1 KB": () => drain(stage, 1_000),
    ...(options.peers ? { peers: () => drainBesidePeers(stage) } : {}),
  });
};

/** Everything in turn, in every round the other way round, because the machine's mood changes; the best of each. */
async function drain(stage: Stage, payloadBytes: number): Promise<Figure[]> {
  const fill = fillOptions(stage, payloadBytes);
  const rawMs: Record<"read and mark" | "send", number[]> = { "read and mark": [], send: [] };
  const relay = new Map<string, Delivered[]>();
  const ways = [
    { name: "plain", delivery: "at-least-once" as const },
    ...TRANSACTION_SIZES.map((transactionSize) => ({
      name: exactlyOnce(transactionSize),
      delivery: "exactly-once" as const,
      transactionSize,
    })),
  ];
  const steps = [
    async () => void rawMs["read and mark"].push(await rawReadAndMark(stage, fill)),
    async () => void rawMs.send.push(await bestRawSend(stage, fill)),
    ...ways.map(({ name, ...way }) => async () => {
      const result = await deliver(stage, fill, way);
      relay.set(name, [...(relay.get(name) ?? []), result]);
      stage.say(`  ${name}: ${Math.round((fill.rows / result.ms) * 1_000)} events/s, ${Math.round(result.rssMb)} MB`);
    }),
  ];
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const step of round % 2 === 0 ? steps : steps.toReversed()) await step();
  }
  return figuresOf(fill.rows, rawMs, relay);
}

function figuresOf(
  rows: number,
  rawMs: Record<"read and mark" | "send", number[]>,
  relay: ReadonlyMap<string, readonly Delivered[]>,
): Figure[] {
  const perS = (ms: number) => (rows / ms) * 1_000;
  const readMs = Math.min(...rawMs["read and mark"]);
  const sendMs = Math.min(...rawMs.send);
  const best = (name: string) => Math.min(...relay.get(name)!.map(({ ms }) => ms));
  const rssMb = Math.max(...[...relay.values()].flat().map((result) => result.rssMb));
  const plainMs = best("plain");
  const shares = TRANSACTION_SIZES.map((size) => ({ size, percent: (plainMs / best(exactlyOnce(size))) * 100 }));
  return [
    measured("raw read + mark", perS(readMs), "events/s"),
    measured("raw send", perS(sendMs), "events/s"),
    ...[...relay.keys()].map((name) => measured(name, perS(best(name)), "events/s")),
    atLeast("plain / slower of the raw ones", (Math.max(readMs, sendMs) / plainMs) * 100, "%", 60),
    ...shares.map(({ size, percent }) => {
      const name = `${exactlyOnce(size)} / plain`;
      return size === 5_000 ? atLeast(name, percent, "%", 80) : measured(name, percent, "%");
    }),
    ...[...relay].flatMap(([name, results]) => cpuFigures(name, leastCpu(results), rows)),
    atMost("peak RSS", rssMb, "MB", 256),
  ];
}

function leastCpu(results: readonly Delivered[]): CpuTimes {
  return results.map(({ cpu }) => cpu).reduce((least, cpu) => (cpu.relayMs < least.relayMs ? cpu : least));
}

function exactlyOnce(transactionSize: number): string {
  return `exactly once, ${transactionSize.toLocaleString("en-US")} a transaction`;
}

export function fillOptions(stage: Stage, payloadBytes: number): FillOptions {
  return {
    rows: Math.round(ROWS * stage.scale),
    payloadBytes,
    keys: Math.max(1, Math.round(KEYS * stage.scale)),
  };
}

async function rawReadAndMark(stage: Stage, fill: FillOptions): Promise<number> {
  await fillTable(stage.postgres, "flag", fill);
  const { readMs, markMs } = await rawPostgres(stage.postgres.url, "flag");
  stage.say(`  raw read ${Math.round(readMs)} ms, mark ${Math.round(markMs)} ms`);
  return readMs + markMs;
}

async function bestRawSend(stage: Stage, fill: FillOptions): Promise<number> {
  await fillTable(stage.postgres, "flag", fill);
  const times: number[] = [];
  for (const sendsAtOnce of RAW_SENDS) {
    await using topic = await stage.freshTopic();
    times.push(await rawSend(stage.kafka.brokers, await messagesOf(stage.postgres, topic.name), sendsAtOnce));
  }
  stage.say(`  raw send ${times.map((ms) => Math.round(ms)).join(" and ")} ms`);
  return Math.min(...times);
}

/** Counted at a consumer that knows nothing of the relay; afterwards every event must be there once. */
export async function deliver(
  stage: Stage,
  fill: FillOptions,
  { telemetry, ...way }: Pick<KafkaTarget, "delivery" | "transactionSize"> & Pick<RelayRun, "telemetry">,
): Promise<Delivered> {
  await fillTable(stage.postgres, "flag", fill);
  await using topic = await stage.freshTopic();
  const { brokers } = stage.kafka;
  using consumer = countArrivals(brokers, topic.name, fill.rows);
  const kafka = { ...way, brokers, topic: topic.name, service: topic.name };
  const watched = telemetry === undefined ? {} : { telemetry };
  const usedCpu = countCpu(stage.postgres, stage.kafka);
  const result = await runRelay(stage.postgres, { kind: "flag", until: "drained", kafka, ...watched });
  const ms = (await consumer.all).reachedMs(1) - result.startedAtMs;
  const cpu = usedCpu(result);
  const content = await inspectTopic(brokers, topic.name, "event-id");
  requireEachOnce(content, fill.rows);
  if (content.transactionEnds > 0 !== (way.delivery === "exactly-once")) {
    throw new Error(
      `${content.transactionEnds} ends of transactions, delivery ${way.delivery}: no figure can be given`,
    );
  }
  return { ms, rssMb: result.rssMb, cpu };
}
