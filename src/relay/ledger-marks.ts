import { crc32 } from "node:zlib";
import type { OutboxEvent } from "../core/event.ts";
import type { QueueStore } from "../ports/queue-store.ts";
import type { CommittedBatch } from "../ports/transactions.ts";

const UUID = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/;
/** Between id and print; the last one counts. */
const SEPARATOR = "\n";
/** Events that are compared at a time. */
const LOOK_MAX = 200;

/**
 * What the ledger notes of an event. A UUID names it for good. A number from a sequence does not: a database that lost
 * its last commits gives the same number to another event, which was never delivered. So a print of the content goes
 * with it.
 */
export function markOf(event: OutboxEvent): string {
  return UUID.test(event.id) ? event.id : `${event.id}${SEPARATOR}${printOf(event)}`;
}

/** The batches by the ids of their events, without those whose id belongs to another event now, and how many these were. */
export async function eventsOfMarks(
  store: QueueStore,
  batches: readonly CommittedBatch[],
): Promise<{ readonly batches: readonly CommittedBatch[]; readonly strangers: number }> {
  const prints = new Map<string, string>();
  for (const { ids } of batches) {
    for (const mark of ids) {
      const [id, print] = partsOf(mark);
      if (print !== null) prints.set(id, print);
    }
  }
  const strangers = await strangersAmong(store, prints);
  const idsOf = (marks: readonly string[]) => marks.map((mark) => partsOf(mark)[0]).filter((id) => !strangers.has(id));
  return { batches: batches.map(({ batch, ids }) => ({ batch, ids: idsOf(ids) })), strangers: strangers.size };
}

async function strangersAmong(store: QueueStore, prints: ReadonlyMap<string, string>): Promise<ReadonlySet<string>> {
  const strangers = new Set<string>();
  const waiting = [...prints.keys()];
  while (waiting.length > 0) {
    const { events, unread } = await store.lookAt(waiting.splice(0, LOOK_MAX));
    for (const event of events) if (printOf(event) !== prints.get(event.id)) strangers.add(event.id);
    waiting.push(...unread);
  }
  return strangers;
}

function partsOf(mark: string): readonly [id: string, print: string | null] {
  const end = mark.lastIndexOf(SEPARATOR);
  return end === -1 ? [mark, null] : [mark.slice(0, end), mark.slice(end + 1)];
}

function printOf({ type, key, createdAt, payload }: OutboxEvent): string {
  const about = crc32(JSON.stringify([type, key, createdAt, payload.length]));
  return `${about.toString(36)}.${crc32(payload).toString(36)}`;
}
