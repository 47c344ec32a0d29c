import assert from "node:assert/strict";
import { headerText, type KafkaRecord } from "../servers/kafka-reader.ts";
import { until } from "../servers/until.ts";
import type { ServiceProcess } from "./service-process.ts";

/** The ids of the events in the order of the records. */
export function idsOf(records: readonly KafkaRecord[]): string[] {
  return records.map((record) => headerText(record, "event-id") ?? assert.fail(`no event-id at ${record.offset}`));
}

/** Every id once: none lost, none doubled, none that nobody wrote. */
export function assertOnce(records: readonly KafkaRecord[], ids: readonly string[], what = "events"): void {
  assertCounts(records, new Map(ids.map((id) => [id, 1])), what);
}

/** Every id as often as it says. */
export function assertCounts(records: readonly KafkaRecord[], counts: ReadonlyMap<string, number>, what: string): void {
  const seen = new Map<string, number>();
  for (const id of idsOf(records)) seen.set(id, (seen.get(id) ?? 0) + 1);
  const lost = [...counts].filter(([id, count]) => (seen.get(id) ?? 0) < count).map(([id]) => id);
  const doubled = [...seen].filter(([id, count]) => count > (counts.get(id) ?? 0)).map(([id]) => id);
  const told = `${what}: ${counts.size} written, ${records.length} records`;
  assert.deepEqual({ lost, doubled }, { lost: [], doubled: [] }, told);
}

/** Where a key is in several partitions, or its events are not in the order of their numbers. */
export function disorderIn(records: readonly KafkaRecord[], numberOf: (record: KafkaRecord) => number): string[] {
  const last = new Map<string, { readonly partition: number; readonly number: number }>();
  return records.flatMap((record) => {
    const key = record.key?.toString() ?? "";
    const before = last.get(key);
    const number = numberOf(record);
    last.set(key, { partition: record.partition, number });
    if (before === undefined || (before.partition === record.partition && before.number < number)) return [];
    return [`${key}: ${number} after ${before.number}, partition ${record.partition} after ${before.partition}`];
  });
}

/** The value of a metric, by its name with its labels. */
export function sample(text: string, name: string): number {
  const line = text.split("\n").find((it) => it.startsWith(`${name} `)) ?? assert.fail(`${name} is not in\n${text}`);
  return Number(line.slice(name.length + 1));
}

/** Waits until the health tells of a problem; returns all of them, each as `name: reason`. */
export async function problemsOnce(service: ServiceProcess, told: RegExp): Promise<string[]> {
  let last: string[] = [];
  const look = async () => {
    const health = await service.get("/health").then(
      ({ json }) => json(),
      () => null,
    );
    const problems = (health?.problems ?? []) as { readonly name: string; readonly reason: string }[];
    last = problems.map(({ name, reason }) => `${name}: ${reason}`);
    return last.some((problem) => told.test(problem));
  };
  await until(`the health tells ${told}`, look).catch((error: Error) => {
    throw new Error(`${error.message}; it tells ${JSON.stringify(last)}\n${service.stderr()}`, { cause: error });
  });
  return last;
}
