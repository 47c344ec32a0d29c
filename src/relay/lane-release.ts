import type { QueueStore } from "../ports/queue-store.ts";

/**
 * Releases the lanes that a stopping instance still owns in the database: lanes that failed or were abandoned keep
 * their owner, and so do their claims. Without this, other instances would wait for them until the lease ends.
 */
export async function releaseRest(store: QueueStore, owner: string): Promise<void> {
  const { lanes } = await store.survey();
  const ours = lanes.filter((lane) => lane.owner === owner).map(({ lane }) => lane);
  const taken = ours.length === 0 ? [] : await store.takeOver(owner, ours);
  for (const { grant } of taken) await store.release(grant);
}
