import { createSlots, dropSlots, PUBLICATION, startDebezium } from "../debezium.ts";
import { deliverLog, type LogStage, warmPerS } from "../deliver-log.ts";
import { atLeast, type Figure, measured } from "../figure.ts";
import { fillInSteps } from "../fill-in-steps.ts";
import { countArrivals, inspectTopic, requireEachOnce } from "../kafka-consumer.ts";
import { fillManaged } from "../managed-outbox.ts";

const ROWS = 1_000_000;
const KEYS = 20_000;
const SLOTS = { debezium: "bench_debezium", relay: "bench_relay" } as const;
const FIELDS = { id: "id", key: "aggregateid", route: "aggregatetype" };

/** The outbox table of Debezium's event router, with the two columns that travel as headers on both sides. */
const CREATE = `drop table if exists public.outbox cascade;
  create table public.outbox (
    id uuid primary key default gen_random_uuid(),
    aggregatetype text not null default 'order',
    aggregateid text not null,
    type text not null,
    payload text not null,
    correlation_id text not null,
    created_at timestamptz not null default clock_timestamp()
  );`;

/**
 * The same rows by a tuned Debezium Server and by the relay, from the write-ahead log of one table, and by the relay
 * from the managed outbox; what counts is the warm part.
 */
export async function drainLogBesidePeers(stage: LogStage): Promise<Figure[]> {
  const { postgres, say } = stage;
  const rows = Math.round(ROWS * stage.scale);
  const fill = { rows, payloadBytes: 200, keys: KEYS };
  say(`  writing ${rows} rows into a table as Debezium has it`);
  await postgres.query(CREATE);
  await createSlots(postgres, Object.values(SLOTS), "table public.outbox");
  await fillInSteps(postgres, ["type", "aggregateid", "payload", "correlation_id"], fill);
  const debezium = await byDebezium(stage, rows);
  say(`  Debezium, tuned: ${Math.round(debezium.warmPerS)} events/s`);
  const plain = { delivery: "at-least-once" } as const;
  const slot = { slot: SLOTS.relay, publication: PUBLICATION };
  const wal = await deliverLog(stage, rows, { ...plain, kind: "wal", wal: slot });
  say(`  write-ahead log: ${Math.round(wal.warmPerS)} events/s`);
  await dropSlots(postgres, Object.values(SLOTS));
  say(`  writing ${rows} rows into a managed outbox`);
  await fillManaged(postgres, fill);
  const managed = await deliverLog(stage, rows, { ...plain, kind: "managed" });
  say(`  managed outbox: ${Math.round(managed.warmPerS)} events/s`);
  const runs = { "Debezium, tuned": debezium, "WAL, plain": wal, "managed outbox, plain": managed };
  return [
    ...Object.entries(runs).flatMap(([name, run]) => [
      measured(`${name}, warm`, run.warmPerS, "events/s"),
      measured(`${name}, peak RSS`, run.rssMb, "MB"),
    ]),
    atLeast("WAL / Debezium", wal.warmPerS / debezium.warmPerS, "times", 1),
    atLeast("managed outbox / Debezium", managed.warmPerS / debezium.warmPerS, "times", 1.5),
  ];
}

async function byDebezium({ postgres, kafka, freshTopic }: LogStage, rows: number) {
  await using topic = await freshTopic();
  using consumer = countArrivals(kafka.brokers, topic.name, rows);
  const run = { postgres, brokers: kafka.brokers, topic: topic.name, slot: SLOTS.debezium, tuned: true };
  await using debezium = await startDebezium({ ...run, fields: FIELDS });
  const arrivals = await Promise.race([consumer.all, debezium.ended]);
  const rssMb = debezium.peakRssMb();
  requireEachOnce(await inspectTopic(kafka.brokers, topic.name, "id"), rows);
  return { warmPerS: warmPerS(arrivals, rows), rssMb };
}
