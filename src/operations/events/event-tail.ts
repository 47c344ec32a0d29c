import type { Clock } from "../../core/clock.ts";
import type { EventFilter } from "./event-filter.ts";
import { type EventPage, type ListedEvent, listEvents } from "./event-list.ts";
import type { OperationTarget } from "./event-source.ts";

const LOOK_EVERY_MS = 1_000;
/** Slow queries run less often, so that the tail stays a small part of the database's load. */
const PAUSE_PER_LOOK = 20;
const ROWS = 200;
/** Rows of each source per read, including those that do not match: bounds the cost of every read. */
const GLANCE_ROWS = 5_000;
const REMEMBERED_MAX = 5_000;
const WATCHED_MAX = 200;

/** One change in a tail. */
export interface Tailed {
  readonly event: ListedEvent;
  readonly what: "new" | "changed";
}

/**
 * Yields events as they are written, and again whenever their state changes, until aborted. Earlier events are not
 * shown. Reads are cut to one page: `missed` is called when events were skipped.
 */
export async function* tailEvents(
  target: OperationTarget,
  filter: EventFilter,
  { clock, signal, missed }: { readonly clock: Clock; readonly signal: AbortSignal; readonly missed: () => void },
): AsyncGenerator<Tailed> {
  const known = new Map<string, ListedEvent>();
  const seenUpTo = new Map<string, string>();
  let isFirst = true;
  while (!signal.aborted) {
    const startedMs = clock.monotonicMs();
    const { covered, events } = await listEvents(target, filter, { limit: ROWS, glanceRows: GLANCE_ROWS });
    const fresh = events.filter((event) => !known.has(keyOf(event)));
    const changed = events.filter((event) => (known.get(keyOf(event))?.state ?? event.state) !== event.state);
    const later = isFirst ? [] : await changedSince(target, known, events);
    const hasGap = covered.filter((it) => leavesGap(it, seenUpTo)).length > 0;
    if (!isFirst && (hasGap || fresh.length === ROWS)) missed();
    for (const event of [...events, ...later]) remember(known, event);
    if (!isFirst) {
      for (const event of fresh.reverse()) yield { event, what: "new" };
      for (const event of [...changed.reverse(), ...later]) yield { event, what: "changed" };
    }
    isFirst = false;
    const tookMs = clock.monotonicMs() - startedMs;
    await clock.sleep(Math.max(LOOK_EVERY_MS, PAUSE_PER_LOOK * tookMs), signal);
  }
}

/** Whether there are unread rows between the newest of the last read and the oldest of this one. Stores the newest. */
function leavesGap({ newest, source, upTo }: EventPage["covered"][number], seen: Map<string, string>): boolean {
  const before = seen.get(source);
  if (newest != null) seen.set(source, newest);
  return before !== undefined && upTo !== null && upTo > before;
}

/** Watched events that were undelivered when last seen and have left the page of the newest since. */
async function changedSince(
  target: OperationTarget,
  known: ReadonlyMap<string, ListedEvent>,
  page: readonly ListedEvent[],
): Promise<readonly ListedEvent[]> {
  const onPage = new Set(page.map(keyOf));
  const open = [...known.values()].filter((event) => !isOver(event) && !onPage.has(keyOf(event))).slice(-WATCHED_MAX);
  const bySource = Map.groupBy(open, ({ source }) => source);
  const changed: ListedEvent[] = [];
  for (const [source, events] of bySource) {
    const { events: now } = await listEvents(
      target,
      { source, ids: events.map(({ id }) => id) },
      { limit: WATCHED_MAX },
    );
    changed.push(...now.filter((event) => known.get(keyOf(event))?.state !== event.state));
  }
  return changed;
}

function isOver({ state }: ListedEvent): boolean {
  return state === "delivered" || state === "discarded";
}

function keyOf({ id, source }: ListedEvent): string {
  return JSON.stringify([source, id]);
}

function remember(known: Map<string, ListedEvent>, event: ListedEvent): void {
  const key = keyOf(event);
  known.delete(key);
  known.set(key, event);
  if (known.size <= REMEMBERED_MAX) return;
  const oldest = known.keys().next();
  if (!oldest.done) known.delete(oldest.value);
}
