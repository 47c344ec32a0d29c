import { startBenchServers } from "../bench-servers.ts";
import { type CpuTimes, cpuFigures } from "../cpu-time.ts";
import { deliverLog, type LogStage } from "../deliver-log.ts";
import { atLeast, atMost, type Figure, measured, type Scenario } from "../figure.ts";
import { countArrivals } from "../kafka-consumer.ts";
import { fillManaged, MANAGED_INSERT, MANAGED_ROWS, rawRead } from "../managed-outbox.ts";
import { measureParts } from "../measure-parts.ts";
import { messagesOf, rawSend } from "../raw-kafka.ts";
import type { KafkaTarget } from "../relay-order.ts";
import { startRelay } from "../relay-run.ts";
import { drainLogBesidePeers } from "./drain-log-peers.ts";
import { latencyOf } from "./latency.ts";

const ROWS = 500_000;
const KEYS = 20_000;
const ROUNDS = 2;
const RAW_SENDS = [2, 4];
const TRANSACTION_SIZE = 5_000;
const GROWTH = { counted: 200_000, pending: [210_000, 10_000_000] } as const;
const RSS_GOALS = { 200: 150, 1000: 200 } as const;

const MANAGED_TABLE = { kind: "managed", fill: fillManaged, insert: MANAGED_INSERT } as const;

/** How fast the relay carries the managed outbox into Kafka, against what each end can do by itself in the same run. */
export const drainLog: Scenario = async (options) => {
  await using servers = await startBenchServers();
  const { postgres, kafka, freshTopic } = servers;
  const stage = { ...options, postgres, kafka, freshTopic };
  return await measureParts(options, {
    "200 B": () => drain(stage, 200),
    "1 KB": () => drain(stage, 1_000),
    "latency, plain": () => latencyOf(servers, MANAGED_TABLE, "at-least-once", options.scale),
    "latency, exactly once": () => latencyOf(servers, MANAGED_TABLE, "exactly-once", options.scale),
    ...(options.growth ? { growth: () => grow(stage) } : {}),
    ...(options.peers ? { "200 B, peers": () => drainLogBesidePeers(stage) } : {}),
  });
};

/** What waits behind must cost nothing: the same first events, once with few behind them and once with very many. */
async function grow(stage: LogStage): Promise<Figure[]> {
  const count = Math.round(GROWTH.counted * stage.scale);
  const speeds: number[] = [];
  let rssMb = 0;
  const pendings = GROWTH.pending.map((rows) => Math.round(rows * stage.scale));
  for (const pending of pendings) {
    await fillManaged(stage.postgres, { rows: pending, payloadBytes: 200, keys: KEYS });
    await using topic = await stage.freshTopic();
    using consumer = countArrivals(stage.kafka.brokers, topic.name, count);
    const target = { brokers: stage.kafka.brokers, topic: topic.name, service: topic.name };
    const kafka = { ...target, delivery: "at-least-once" as const };
    const relay = await startRelay(stage.postgres, { kind: "managed", until: "told to stop", kafka });
    const reachedMs = (await consumer.all).reachedMs(1);
    relay.stop();
    const result = await relay.result;
    rssMb = result.rssMb;
    speeds.push((count / (reachedMs - result.startedAtMs)) * 1_000);
    stage.say(`  ${pending} pending: ${Math.round(speeds.at(-1)!)} events/s, ${Math.round(rssMb)} MB`);
  }
  const [few, many] = speeds as [number, number];
  return [
    measured(`${count} events of ${pendings[0]} pending`, few, "events/s"),
    measured(`${count} events of ${pendings[1]} pending`, many, "events/s"),
    atMost("fall", (1 - many / few) * 100, "%", 10),
    atMost(`peak RSS, ${pendings[1]} pending`, rssMb, "MB", RSS_GOALS[200]),
  ];
}

/** Everything in turn, in every round the other way round, because the machine's mood changes; the best of each. */
async function drain(stage: LogStage, payloadBytes: 200 | 1_000): Promise<Figure[]> {
  const rows = Math.round(ROWS * stage.scale);
  const fill = { rows, payloadBytes, keys: Math.max(1, Math.round(KEYS * stage.scale)) };
  await fillManaged(stage.postgres, fill);
  const times = new Map<string, number[]>();
  const cpu = new Map<string, CpuTimes>();
  let rssMb = 0;
  const note = (name: string, ms: number) => {
    times.set(name, [...(times.get(name) ?? []), ms]);
    stage.say(`  ${name}: ${Math.round((rows / ms) * 1_000)} events/s`);
  };
  const relay = async (name: string, way: Pick<KafkaTarget, "delivery" | "transactionSize">) => {
    // Nothing is marked in a log, so the same rows serve every measurement.
    const result = await deliverLog(stage, rows, { kind: "managed", ...way });
    rssMb = Math.max(rssMb, result.rssMb);
    const before = cpu.get(name);
    if (before === undefined || result.cpu.relayMs < before.relayMs) cpu.set(name, result.cpu);
    note(name, result.ms);
  };
  const steps = [
    async () => note("raw read", await rawRead(stage.postgres.url)),
    async () => note("raw send", await bestRawSend(stage)),
    () => relay("plain", { delivery: "at-least-once" }),
    () => relay("exactly once", { delivery: "exactly-once", transactionSize: TRANSACTION_SIZE }),
  ];
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const step of round % 2 === 0 ? steps : steps.toReversed()) await step();
  }
  const best = (name: string) => Math.min(...times.get(name)!);
  const slowerMs = Math.max(best("raw read"), best("raw send"));
  return [
    ...[...times.keys()].map((name) => measured(name, (rows / best(name)) * 1_000, "events/s")),
    atLeast("plain / slower of the raw ones", (slowerMs / best("plain")) * 100, "%", 60),
    measured("exactly once / slower of the raw ones", (slowerMs / best("exactly once")) * 100, "%"),
    atLeast("exactly once / plain", (best("plain") / best("exactly once")) * 100, "%", 90),
    ...[...cpu].flatMap(([name, used]) => cpuFigures(name, used, rows)),
    atMost("peak RSS", rssMb, "MB", RSS_GOALS[payloadBytes]),
  ];
}

async function bestRawSend(stage: LogStage): Promise<number> {
  const times: number[] = [];
  for (const sendsAtOnce of RAW_SENDS) {
    await using topic = await stage.freshTopic();
    const messages = await messagesOf(stage.postgres, topic.name, MANAGED_ROWS);
    times.push(await rawSend(stage.kafka.brokers, messages, sendsAtOnce));
  }
  return Math.min(...times);
}
