import { crc32 } from "node:zlib";
import type { OutboxEvent } from "../core/event.ts";
import type { QueueStore } from "../ports/queue-store.ts";
import type { CommittedBatch } from "../ports/transactions.ts";

const UUID = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/;
/** Separates id and fingerprint; the last one counts. */
const SEPARATOR = "\n";
/** Events that are read and compared at a time. */
const READ_MAX = 200;

/**
 * What the ledger records of an event. A UUID identifies the event for good. A number from a sequence does not: a
 * database that lost its last commits gives the same number to another event, which was never delivered. The mark then
 * also holds a fingerprint of the content.
 */
export function markOf(event: OutboxEvent): string {
  return UUID.test(event.id) ? event.id : `${event.id}${SEPARATOR}${printOf(event)}`;
}

/**
 * The batches with the ids of their delivered events, and the number of new events that have the id of a delivered one.
 * An id that can be given out twice is kept only while its row exists and has the same content: a row that is missing
 * now may be a new event in a moment.
 */
export async function eventsOfMarks(
  store: QueueStore,
  batches: readonly CommittedBatch[],
): Promise<{ readonly batches: readonly CommittedBatch[]; readonly reusedIds: number }> {
  const prints = new Map<string, string>();
  for (const { ids } of batches) {
    for (const mark of ids) {
      const [id, print] = partsOf(mark);
      if (print !== null) prints.set(id, print);
    }
  }
  const { known, reusedIds } = await compare(store, prints);
  const idsOf = (marks: readonly string[]) =>
    marks.map((mark) => partsOf(mark)[0]).filter((id) => !prints.has(id) || known.has(id));
  return { batches: batches.map(({ batch, ids }) => ({ batch, ids: idsOf(ids) })), reusedIds };
}

async function compare(
  store: QueueStore,
  prints: ReadonlyMap<string, string>,
): Promise<{ readonly known: ReadonlySet<string>; readonly reusedIds: number }> {
  const known = new Set<string>();
  let reusedIds = 0;
  const waiting = [...prints.keys()];
  while (waiting.length > 0) {
    const { events, unread } = await store.readUnsettled(waiting.splice(0, READ_MAX));
    for (const event of events) {
      if (printOf(event) === prints.get(event.id)) known.add(event.id);
      else reusedIds += 1;
    }
    waiting.push(...unread);
  }
  return { known, reusedIds };
}

function partsOf(mark: string): readonly [id: string, print: string | null] {
  const end = mark.lastIndexOf(SEPARATOR);
  return end === -1 ? [mark, null] : [mark.slice(0, end), mark.slice(end + 1)];
}

function printOf({ type, key, createdAt, payload }: OutboxEvent): string {
  const about = crc32(JSON.stringify([type, key, createdAt, payload.length]));
  return `${about.toString(36)}.${crc32(payload).toString(36)}`;
}
