import type { BenchServers } from "../bench-servers.ts";
import { createSlots, dropSlots, startDebezium } from "../debezium.ts";
import { type Figure, measured, type ScenarioOptions } from "../figure.ts";
import { type Arrivals, countArrivals, inspectTopic, requireEachOnce } from "../kafka-consumer.ts";
import { fillTable } from "../outbox-tables.ts";
import { runRelay } from "../relay-run.ts";

const ROWS = 1_000_000;
const KEYS = 20_000;
const SLOTS = ["bench_default", "bench_tuned"];

type Stage = ScenarioOptions & Pick<BenchServers, "postgres" | "kafka" | "freshTopic">;

/**
 * The same rows once by Debezium Server as it comes, once by a tuned one, from the log, and once by the relay, from the
 * table. What counts is the speed over the last two thirds of the rows, when everything is warm.
 */
export async function drainBesidePeers(stage: Stage): Promise<Figure[]> {
  const rows = Math.round(ROWS * stage.scale);
  await createSlots(stage.postgres, SLOTS);
  stage.say(`  writing ${rows} rows`);
  await fillTable(stage.postgres, "flag", { rows, payloadBytes: 200, keys: KEYS });
  const warmPerS = (arrivals: Arrivals) =>
    ((rows * 2) / 3 / (arrivals.reachedMs(1) - arrivals.reachedMs(1 / 3))) * 1_000;
  const speeds: Record<string, number> = {};
  const figures: Figure[] = [];
  for (const [index, name] of ["Debezium, defaults", "Debezium, tuned"].entries()) {
    const { arrivals, rssMb } = await byDebezium(stage, rows, SLOTS[index]!, index === 1);
    speeds[name] = warmPerS(arrivals);
    stage.say(`  ${name}: ${Math.round(speeds[name])} events/s`);
    figures.push(measured(`${name}, warm`, speeds[name], "events/s"), measured(`${name}, peak RSS`, rssMb, "MB"));
  }
  await dropSlots(stage.postgres, SLOTS);
  const { arrivals, rssMb } = await byRelay(stage, rows);
  const relay = warmPerS(arrivals);
  figures.push(measured("relay, plain, warm", relay, "events/s"), measured("relay, plain, peak RSS", rssMb, "MB"));
  for (const [name, speed] of Object.entries(speeds)) figures.push(measured(`relay / ${name}`, relay / speed, "times"));
  return figures;
}

async function byDebezium({ postgres, kafka, freshTopic }: Stage, rows: number, slot: string, tuned: boolean) {
  await using topic = await freshTopic();
  using consumer = countArrivals(kafka.brokers, topic.name, rows);
  const run = { postgres, brokers: kafka.brokers, topic: topic.name, slot, tuned };
  await using debezium = await startDebezium(run);
  const arrivals = await Promise.race([consumer.all, debezium.ended]);
  const rssMb = debezium.peakRssMb();
  requireEachOnce(await inspectTopic(kafka.brokers, topic.name, "id"), rows);
  return { arrivals, rssMb };
}

async function byRelay({ postgres, kafka, freshTopic }: Stage, rows: number) {
  await using topic = await freshTopic();
  using consumer = countArrivals(kafka.brokers, topic.name, rows);
  const delivery = "at-least-once" as const;
  const target = { brokers: kafka.brokers, topic: topic.name, service: topic.name, delivery };
  const { rssMb } = await runRelay(postgres, { kind: "flag", until: "drained", kafka: target });
  const arrivals = await consumer.all;
  requireEachOnce(await inspectTopic(kafka.brokers, topic.name, "event-id"), rows);
  return { arrivals, rssMb };
}
