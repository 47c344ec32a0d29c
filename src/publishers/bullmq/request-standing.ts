import type { Redis } from "ioredis";
import type { DeadRequest, RequestGroup, RequestStanding } from "../../ports/request-queue.ts";
import type { BullmqLink } from "./bullmq-client.ts";
import { groupKeys } from "./request-keys.ts";

const SCAN_COUNT = 500;

export async function standing(link: BullmqLink, group: RequestGroup): Promise<RequestStanding> {
  const { dead, lease, position } = groupKeys(group);
  const { client } = link;
  const [[token, place], count, jobs] = await Promise.all([
    client.mget(lease, position),
    client.hlen(dead),
    link.jobCounts(group.queue),
  ]);
  // A token is the owner and the number of the turn.
  return { position: place ?? null, holder: token?.replace(/:\d+$/, "") ?? null, dead: count, jobs };
}

/** Whoever dispatches at this moment finds its lease gone, takes it again, and reads on from the new position. */
export async function seek(client: Redis, group: RequestGroup, position: string): Promise<void> {
  const keys = groupKeys(group);
  await client.multi().set(keys.position, position).incr(keys.turns).del(keys.lease).exec();
}

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

export async function discard(client: Redis, group: RequestGroup, eventIds: readonly string[]): Promise<number> {
  return eventIds.length === 0 ? 0 : await client.hdel(groupKeys(group).dead, ...eventIds);
}

interface MemoryFault {
  readonly what: string;
  readonly fix: string;
}

/** By INFO, which managed servers answer too. */
export async function memoryFaults(client: Redis): Promise<readonly MemoryFault[]> {
  const info = await client.info("everything");
  const setting = (name: string) => new RegExp(`^${name}:(.*?)\\r?$`, "m").exec(info)?.[1];
  const policy = setting("maxmemory_policy");
  const isEvicting = policy !== undefined && policy !== "noeviction";
  return [
    ...(setting("aof_enabled") === "0"
      ? [{ what: "a restart of Redis forgets jobs, markers and checkpoints", fix: "appendonly yes" }]
      : []),
    ...(isEvicting
      ? [{ what: `Redis throws jobs away when it is full (${policy})`, fix: "maxmemory-policy noeviction" }]
      : []),
  ];
}
