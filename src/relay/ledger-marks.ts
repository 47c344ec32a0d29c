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

/**
 * The batches by the ids of their events, and how many events only bear the id of one. Of ids that may be given out
 * twice only those are kept whose event is there and is the one: whoever is not there now may be another one in a moment.
 */
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
  const { known, strangers } = await compare(store, prints);
  const idsOf = (marks: readonly string[]) =>
    marks.map((mark) => partsOf(mark)[0]).filter((id) => !prints.has(id) || known.has(id));
  return { batches: batches.map(({ batch, ids }) => ({ batch, ids: idsOf(ids) })), strangers };
}

async function compare(
  store: QueueStore,
  prints: ReadonlyMap<string, string>,
): Promise<{ readonly known: ReadonlySet<string>; readonly strangers: number }> {
  const known = new Set<string>();
  let strangers = 0;
  const waiting = [...prints.keys()];
  while (waiting.length > 0) {
    const { events, unread } = await store.lookAt(waiting.splice(0, LOOK_MAX));
    for (const event of events) {
      if (printOf(event) === prints.get(event.id)) known.add(event.id);
      else strangers += 1;
    }
    waiting.push(...unread);
  }
  return { known, strangers };
}

function partsOf(mark: string): readonly [id: string, print: string | null] {
  const end = mark.lastIndexOf(SEPARATOR);
  return end === -1 ? [mark, null] : [mark.slice(0, end), mark.slice(end + 1)];
}

function printOf({ type, key, createdAt, payload }: OutboxEvent): string {
  const about = crc32(JSON.stringify([type, key, createdAt, payload.length]));
  return `${about.toString(36)}.${crc32(payload).toString(36)}`;
}
