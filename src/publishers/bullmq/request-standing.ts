import type { Redis } from "ioredis";
import { infoOf } from "../../core/redis-link.ts";
import type { DeadRequest, RequestGroup, RequestStanding } from "../../ports/request-queue.ts";
import type { BullmqLink } from "./bullmq-client.ts";
import { groupKeys } from "./request-keys.ts";

const SCAN_COUNT = 500;

/** The state of a group. */
export async function standing(link: BullmqLink, group: RequestGroup): Promise<RequestStanding> {
  const { dead, lease, position } = groupKeys(group);
  const { client } = link;
  const [[token, place], count, jobs] = await Promise.all([
    client.mget(lease, position),
    client.hlen(dead),
    link.jobCounts(group.queue),
  ]);
  // A token is the owner and the lease count.
  return { position: place ?? null, holder: token?.replace(/:\d+$/, "") ?? null, dead: count, jobs };
}

/** Sets the position. A running relay loses its lease, acquires it again, and continues from the new position. */
export async function seek(client: Redis, group: RequestGroup, position: string): Promise<void> {
  const keys = groupKeys(group);
  await client.multi().set(keys.position, position).incr(keys.leaseCount).del(keys.lease).exec();
}

/** Dead events, at most `max`, in no order. */
export async function deadRequests(client: Redis, group: RequestGroup, max: number): Promise<readonly DeadRequest[]> {
  const found: DeadRequest[] = [];
  let cursor = "0";
  do {
    const [next, fields] = await client.hscan(groupKeys(group).dead, cursor, "COUNT", SCAN_COUNT);
    cursor = next;
    for (let at = 1; at < fields.length; at += 2) found.push(JSON.parse(fields[at]!) as DeadRequest);
  } while (cursor !== "0" && found.length < max);
  return found.slice(0, max);
}

/** Deletes dead events; returns how many there were. */
export async function discard(client: Redis, group: RequestGroup, eventIds: readonly string[]): Promise<number> {
  return eventIds.length === 0 ? 0 : await client.hdel(groupKeys(group).dead, ...eventIds);
}

interface MemoryFault {
  readonly what: string;
  readonly fix: string;
}

/** Settings by which Redis can lose jobs, markers or checkpoints. */
export async function memoryFaults(client: Redis): Promise<readonly MemoryFault[]> {
  const info = await client.info("everything");
  const policy = infoOf(info, "maxmemory_policy");
  const isEvicting = policy !== undefined && policy !== "noeviction";
  return [
    ...(infoOf(info, "aof_enabled") === "0"
      ? [{ what: "Redis loses jobs, markers and checkpoints when it restarts", fix: "appendonly yes" }]
      : []),
    ...(isEvicting
      ? [{ what: `Redis evicts jobs when its memory is full (${policy})`, fix: "maxmemory-policy noeviction" }]
      : []),
  ];
}
