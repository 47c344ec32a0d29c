import type { QueueStore } from "../ports/queue-store.ts";

/**
 * Lanes that failed, or were given up, still bear the name of their owner, and so do the claims in them. When it ends,
 * nobody should have to wait for them until its lease is over.
 */
export async function releaseRest(store: QueueStore, owner: string): Promise<void> {
  const { lanes } = await store.survey();
  const ours = lanes.filter((lane) => lane.owner === owner).map(({ lane }) => lane);
  const taken = ours.length === 0 ? [] : await store.takeOver(owner, ours);
  for (const { grant } of taken) await store.release(grant);
}
