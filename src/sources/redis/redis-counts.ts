import { typeMatcher } from "../../core/type-filter.ts";
import { BACKLOG_EXACT_MAX, type Backlog, type TypeFilter } from "../../ports/queue-store.ts";
import { type EventHead, headOf } from "./event-head.ts";
import { countScript, takenScript } from "./lua/reading.ts";
import type { RedisLink } from "./redis-link.ts";
import { listOf, numberOf, type Reply, textOf } from "./redis-replies.ts";

/** Events that one script looks at. */
const COUNT_EVENTS = 1_000;
const UNROUTED_COUNT_MAX = 1_000;

interface Looked {
  readonly looked: number;
  readonly isEnd: boolean;
  readonly total: number;
  readonly dead: number;
  readonly nowMs: number;
}

/** Looks at the first of what waits, some at a time, so that nobody else waits long and nothing is kept. */
async function lookAtFirst(
  link: RedisLink,
  pipeline: string,
  lanes: number,
  visit: (head: EventHead) => void,
): Promise<Looked> {
  let after = "0";
  for (let looked = 0; ; ) {
    const args = [pipeline, lanes, after, COUNT_EVENTS];
    const reply = listOf((await link.run("reads", "counting what waits", countScript, args)) as Reply);
    const [next, count, end, rows, total, dead, nowMs] = reply;
    after = textOf(next);
    looked += numberOf(count);
    for (const row of listOf(rows)) visit(headOf(row));
    const isEnd = numberOf(end) === 1;
    if (!isEnd && looked < BACKLOG_EXACT_MAX) continue;
    return { looked, isEnd, total: numberOf(total), dead: numberOf(dead), nowMs: numberOf(nowMs) };
  }
}

export async function countBacklog(
  link: RedisLink,
  pipeline: string,
  lanes: number,
  isMine: (head: EventHead) => boolean,
): Promise<Backlog> {
  let waiting = 0;
  let oldestMs: number | null = null;
  const { dead, isEnd, looked, nowMs, total } = await lookAtFirst(link, pipeline, lanes, (head) => {
    if (!isMine(head)) return;
    waiting += 1;
    oldestMs ??= head.createdMs;
  });
  return {
    pending: isEnd ? waiting : Math.round((waiting / looked) * Math.max(total, looked)),
    isEstimate: !isEnd,
    oldestAgeMs: oldestMs === null ? null : Math.max(0, nowMs - oldestMs),
    dead,
  };
}

/** Among the first events that wait: what nobody takes does not go away, and comes to the front. */
export async function countUnrouted(
  link: RedisLink,
  pipeline: string,
  lanes: number,
): Promise<readonly { readonly type: string; readonly count: number }[]> {
  const reply = await link.run("reads", "asking who takes which types", takenScript, [pipeline]);
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

/** Undefined when the instance does not say. */
function filterOf(pipeline: string, takes: string): TypeFilter | undefined {
  if (takes === "") return undefined;
  return (JSON.parse(takes) as Readonly<Record<string, TypeFilter>>)[pipeline];
}
