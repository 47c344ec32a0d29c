import { typeMatcher } from "../../core/type-filter.ts";
import { BACKLOG_EXACT_MAX, type Backlog, type TypeFilter } from "../../ports/queue-store.ts";
import { type EventHead, headOf } from "./event-head.ts";
import { countScript, takenScript } from "./lua/reading.ts";
import { type RedisPlace, redisSettings } from "./redis-config.ts";
import { RedisLink } from "./redis-link.ts";
import { listOf, numberOf, type Reply, textOf } from "./redis-replies.ts";

/** Events that one script scans. */
const COUNT_EVENTS = 1_000;
/** Counted per type, at most. */
export const UNROUTED_COUNT_MAX = 1_000;
const TYPES_MAX = 200;

interface Looked {
  readonly looked: number;
  readonly isEnd: boolean;
  readonly total: number;
  readonly dead: number;
  readonly nowMs: number;
}

/** Scans the first pending events in steps, so that no other client waits long and nothing is kept in memory. */
async function lookAtFirst(
  link: RedisLink,
  pipeline: string,
  lanes: number,
  visit: (head: EventHead, isBehindDead: boolean) => void,
): Promise<Looked> {
  let after = "0";
  for (let looked = 0; ; ) {
    const args = [pipeline, lanes, after, COUNT_EVENTS];
    const reply = listOf((await link.run("reads", "counting pending events", countScript, args)) as Reply);
    const [next, count, end, rows, stopped, total, dead, nowMs] = reply;
    after = textOf(next);
    looked += numberOf(count);
    for (const row of listOf(rows)) visit(headOf(row), false);
    for (const row of listOf(stopped)) visit(headOf(row), true);
    const isEnd = numberOf(end) === 1;
    if (!isEnd && looked < BACKLOG_EXACT_MAX) continue;
    return { looked, isEnd, total: numberOf(total), dead: numberOf(dead), nowMs: numberOf(nowMs) };
  }
}

/** Counts the pipeline's pending events; an estimate once the scan reaches its limit. */
export async function countBacklog(
  link: RedisLink,
  pipeline: string,
  lanes: number,
  isMine: (head: EventHead) => boolean,
): Promise<Backlog> {
  let waiting = 0;
  let behindDead = 0;
  let oldestMs: number | null = null;
  const { dead, isEnd, looked, nowMs, total } = await lookAtFirst(link, pipeline, lanes, (head, isBehindDead) => {
    if (!isMine(head)) return;
    if (isBehindDead) behindDead += 1;
    else {
      waiting += 1;
      oldestMs ??= head.createdMs;
    }
  });
  const inAll = (count: number) => (isEnd ? count : Math.round((count / looked) * Math.max(total, looked)));
  return {
    pending: inAll(waiting),
    isEstimate: !isEnd,
    oldestAgeMs: oldestMs === null ? null : Math.max(0, nowMs - oldestMs),
    behindDead: inAll(behindDead),
    dead,
  };
}

/**
 * Counts by type among the first pending events only: events that match no route are never delivered, so they gather at
 * the front.
 */
export async function countUnrouted(
  link: RedisLink,
  pipeline: string,
  lanes: number,
): Promise<readonly { readonly type: string; readonly count: number }[]> {
  const reply = await link.run("reads", "reading the type filters", takenScript, [pipeline]);
  const living = listOf(reply as Reply).map((row) => {
    const [name, takes, isOwner] = listOf(row);
    return { name: textOf(name), takes: textOf(takes), isOwner: numberOf(isOwner) === 1 };
  });
  const owners = living.filter(({ isOwner }) => isOwner).map(({ name }) => name);
  if ((owners.sort()[0] ?? pipeline) !== pipeline) return [];
  const filters = living.map(({ name, takes }) => filterOf(name, takes));
  if (filters.some((filter) => filter === undefined || filter === null)) return [];
  const matchers = filters.map((filter) => typeMatcher(filter ?? null));
  const counts = new Map<string, number>();
  await lookAtFirst(link, pipeline, lanes, (head) => {
    if (matchers.some((takes) => takes(head))) return;
    counts.set(head.type, Math.min(UNROUTED_COUNT_MAX, (counts.get(head.type) ?? 0) + 1));
  });
  return [...counts].map(([type, count]) => ({ type, count }));
}

/** The types among the first pending events, whichever pipeline they are for. Writes nothing. */
export async function waitingTypes(place: RedisPlace): Promise<readonly string[]> {
  const link = new RedisLink(redisSettings(place));
  const types = new Set<string>();
  try {
    await lookAtFirst(link, "", 1, ({ type }) => {
      if (types.size < TYPES_MAX) types.add(type);
    });
    return [...types];
  } finally {
    await link.close();
  }
}

/** Undefined when the instance did not report its filters. */
function filterOf(pipeline: string, takes: string): TypeFilter | undefined {
  if (takes === "") return undefined;
  return (JSON.parse(takes) as Readonly<Record<string, TypeFilter>>)[pipeline];
}
