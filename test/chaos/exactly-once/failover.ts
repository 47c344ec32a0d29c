import { setTimeout as pauseMs } from "node:timers/promises";
import type { Stage } from "../../e2e/stage.ts";
import type { ReplicatedPostgres } from "../../servers/postgres-standby.ts";

/** The default: longer than a ring of 64 batches would last. */
const BEHIND_MS = 2_000;

/**
 * Promotes a standby that is so far behind, and returns how many batches it lost at most per lane. The relay's promise
 * reaches as far as the ledger's ring.
 */
export async function failOver(pair: ReplicatedPostgres, stage: Stage, behindMs = BEHIND_MS): Promise<number> {
  await pair.caughtUp();
  const before = await settledBatches(stage);
  pair.pauseReplication();
  await pauseMs(behindMs); // why: the standby lags behind by this time
  const now = await settledBatches(stage);
  const count = Math.max(0, ...[...now].map(([lane, batch]) => batch - (before.get(lane) ?? 0)));
  await pair.failover();
  return count;
}

async function settledBatches(stage: Stage): Promise<Map<string, number>> {
  const rows = await stage.sql<{ lane: string; batch: string }>(
    "select pipeline || ' ' || lane as lane, settled_batch as batch from outbox_relay.lanes",
  );
  return new Map(rows.map(({ lane, batch }) => [lane, Number(batch)]));
}
