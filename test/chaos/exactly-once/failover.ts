import type { Stage } from "../../e2e/stage.ts";
import type { ReplicatedPostgres } from "../../servers/postgres-standby.ts";
import { until } from "../../servers/until.ts";

/**
 * Settled batches of one lane that the new primary shall lack. The relay's promise reaches as far as the ledger's ring:
 * half of its 64 batches may be unsettled, the other half covers what a failover takes back.
 */
const BATCHES_LOST = 12;

/** Promotes the standby of which the last commits never came, and returns how many batches it lost at most per lane. */
export async function failOver(pair: ReplicatedPostgres, stage: Stage): Promise<number> {
  await pair.caughtUp();
  const before = await settledBatches(stage);
  pair.pauseReplication();
  const lost = async () => {
    const now = await settledBatches(stage);
    return Math.max(0, ...[...now].map(([lane, batch]) => batch - (before.get(lane) ?? 0)));
  };
  // Between two looks a lane settles a handful of batches at most, so that this stays far below the ring.
  await until("the standby has fallen behind", async () => (await lost()) >= BATCHES_LOST, 5_000).catch(() => {});
  const count = await lost();
  await pair.failover();
  return count;
}

async function settledBatches(stage: Stage): Promise<Map<string, number>> {
  const rows = await stage.sql<{ lane: string; batch: string }>(
    "select pipeline || ' ' || lane as lane, settled_batch as batch from outbox_relay.lanes",
  );
  return new Map(rows.map(({ lane, batch }) => [lane, Number(batch)]));
}
