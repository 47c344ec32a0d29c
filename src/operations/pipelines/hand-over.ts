import { setTimeout as sleep } from "node:timers/promises";
import { isRelayError, RelayError } from "../../core/errors.ts";
import { writeSettings } from "../../postgres/lanes.ts";
import { postgresMembership } from "../../postgres/membership.ts";
import type { Database } from "../../postgres/pool.ts";
import type { Session } from "../../postgres/session.ts";
import { transaction } from "../../postgres/transaction.ts";
import type { KnownPipeline } from "./pipelines.ts";

/** Options of a hand-over. */
export interface HandOverOptions {
  /** How long instances may take to hand their lanes over. */
  readonly timeoutMs: number;
  /** Called repeatedly with the number of lanes that are still owned. */
  readonly onWait?: ((owned: number) => void) | undefined;
}

const LOOK_MS = 200;

/**
 * Requests all lanes of a paused pipeline from their instances, which settle events in flight first, and repeats
 * `attempt` until it returns 0, the number of lanes that are still owned. A successful attempt withdraws the request
 * itself.
 */
export async function onceHandedOver(
  database: Database,
  { lanes: before, pipeline }: KnownPipeline,
  lanesWanted: number,
  { onWait, timeoutMs }: HandOverOptions,
  attempt: () => Promise<number>,
): Promise<void> {
  await askForLanes(database, pipeline, lanesWanted);
  const deadlineMs = performance.now() + timeoutMs;
  try {
    for (;;) {
      // Without a running relay, no other process removes expired instances.
      await postgresMembership(database).reap();
      const owned = await attempt().catch((error: unknown) => {
        // An instance is handing a lane over at this moment.
        if (isRelayError(error, "DATABASE_BUSY")) return before;
        throw error;
      });
      if (owned === 0) return;
      onWait?.(owned);
      if (performance.now() >= deadlineMs) throw stillOwned(pipeline, owned, timeoutMs);
      await sleep(LOOK_MS);
    }
  } catch (error) {
    await askForLanes(database, pipeline, null).catch(() => {});
    throw error;
  }
}

/** Locks all lanes until the end of the transaction, and returns how many a live instance owns. */
export async function lockFreeLanes(session: Session, { tables }: Database, pipeline: string): Promise<number> {
  await session.rows(`select from ${tables.lanes} where pipeline = $1 order by lane for update`, [pipeline]);
  const [owned] = await session.rows(
    `select count(*) from ${tables.lanes} l join ${tables.instances} i on i.id = l.owner where l.pipeline = $1`,
    [pipeline],
  );
  return Number(owned?.[0]);
}

function stillOwned(pipeline: string, owned: number, timeoutMs: number): RelayError {
  const what = `${owned} lanes of ${pipeline} were not handed over within ${Math.round(timeoutMs / 1_000)} s`;
  return new RelayError(
    "CONFIG_INVALID",
    `${what}: find their owners with \`outbox-relay lanes\`, and stop those instances or allow more time with --timeout.`,
  );
}

/** Instances that see the request hand their lanes over and acquire none; null withdraws it. */
async function askForLanes(database: Database, pipeline: string, lanes: number | null): Promise<void> {
  await transaction(database.pool, writeSettings(database, "asking for the lanes"), (session) =>
    session.rows(
      `update ${database.tables.pipelines} set lanes_wanted = $2 where name = $1 and paused_at is not null`,
      [pipeline, lanes],
    ),
  );
}
