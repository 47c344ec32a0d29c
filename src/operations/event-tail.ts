import type { Clock } from "../core/clock.ts";
import type { EventFilter } from "./event-filter.ts";
import { type EventPage, type ListedEvent, listEvents } from "./event-list.ts";
import type { OperationTarget } from "./event-source.ts";

const LOOK_EVERY_MS = 1_000;
/** A question that takes its time is asked more rarely: it may be a small part of what the database does, no more. */
const PAUSE_PER_LOOK = 20;
const ROWS = 200;
/** Rows of each source that a look takes in: what is filtered out counts too, so that no look is ever long. */
const GLANCE_ROWS = 5_000;
const REMEMBERED_MAX = 5_000;
const WATCHED_MAX = 200;

export interface Tailed {
  readonly event: ListedEvent;
  readonly what: "new" | "changed";
}

/**
 * Events as they are written, and again whenever their state changes, until aborted. What was there before is not
 * shown. More than a page between two looks is cut: `missed` hears of it.
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

/** Whether rows lie between the newest of the last look and the oldest of this one. Notes what has been looked at. */
function leavesGap({ newest, source, upTo }: EventPage["covered"][number], seen: Map<string, string>): boolean {
  const before = seen.get(source);
  if (newest != null) seen.set(source, newest);
  return before !== undefined && upTo !== null && upTo > before;
}

/** Those that were on their way when last seen, and have left the page of the newest ones since. */
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
