import { createSlots, dropSlots, startDebezium } from "../debezium.ts";
import { atLeast, type Figure, measured } from "../figure.ts";
import { countArrivals, inspectTopic, requireEachOnce } from "../kafka-consumer.ts";
import { fillManaged } from "../managed-outbox.ts";
import { deliverLog, type LogStage } from "./drain-log.ts";

const ROWS = 1_000_000;
const KEYS = 20_000;
const SLOT = "bench_log";
/** Debezium's words for the columns of the managed outbox. */
const FIELDS = { id: "event_id", key: "event_key", route: "event_type" };

/** The same rows by a tuned Debezium Server, from the write-ahead log, and by the relay; what counts is the warm part. */
export async function drainLogBesidePeers(stage: LogStage): Promise<Figure[]> {
  const rows = Math.round(ROWS * stage.scale);
  await createSlots(stage.postgres, [SLOT]);
  stage.say(`  writing ${rows} rows`);
  await fillManaged(stage.postgres, { rows, payloadBytes: 200, keys: KEYS });
  const debezium = await byDebezium(stage, rows);
  stage.say(`  Debezium, tuned: ${Math.round(debezium)} events/s`);
  await dropSlots(stage.postgres, [SLOT]);
  const relay = await deliverLog(stage, rows, { kind: "managed", delivery: "at-least-once" });
  return [
    measured("Debezium, tuned, warm", debezium, "events/s"),
    measured("managed outbox, plain, warm", relay.warmPerS, "events/s"),
    atLeast("managed outbox / Debezium", relay.warmPerS / debezium, "times", 1.5),
  ];
}

async function byDebezium({ postgres, kafka, freshTopic }: LogStage, rows: number): Promise<number> {
  await using topic = await freshTopic();
  using consumer = countArrivals(kafka.brokers, topic.name, rows);
  const run = { postgres, brokers: kafka.brokers, topic: topic.name, slot: SLOT, tuned: true, fields: FIELDS };
  await using debezium = await startDebezium(run);
  const arrivals = await Promise.race([consumer.all, debezium.ended]);
  requireEachOnce(await inspectTopic(kafka.brokers, topic.name, "id"), rows);
  return ((rows * 2) / 3 / (arrivals.reachedMs(1) - arrivals.reachedMs(1 / 3))) * 1_000;
}
