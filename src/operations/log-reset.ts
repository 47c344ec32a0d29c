import { setTimeout as sleep } from "node:timers/promises";
import { moveSlots } from "../postgres/identity.ts";
import type { Database } from "../postgres/pool.ts";
import type { Session } from "../postgres/session.ts";
import { dropSlot, freeSlot, slotHealth, slotName } from "../sources/postgres/wal/slot.ts";
import type { Author } from "./author.ts";
import type { OperationTarget } from "./event-source.ts";
import type { HandOverOptions } from "./hand-over.ts";
import { noteLogChange } from "./log-audit.ts";
import { parkedCounts, slotOf } from "./log-list.ts";
import { giveUpParked, onceFree, requireLog } from "./log-seek.ts";
import type { KnownPipeline } from "./pipelines.ts";

export interface ResetPlan {
  readonly pipeline: string;
  /** Events that wait beside the log and would be forgotten. */
  readonly parked: number;
  /** The replication slot that would be dropped. */
  readonly slot: string | null;
}

/** What a reset would do. Reads only. */
export async function planReset({ database }: OperationTarget, known: KnownPipeline): Promise<ResetPlan> {
  const { pipeline } = known;
  const slot = requireLog(known) === "wal" ? ((await slotOf(database, pipeline))?.name ?? null) : null;
  return { pipeline, parked: (await parkedCounts(database)).get(pipeline) ?? 0, slot };
}

/**
 * Forgets how far a pipeline came, as if it had never been there: it keeps no log from being pruned any more, and
 * whoever runs it again begins where LOG_START says. Dead letters keep their copies, as discarded.
 */
export async function resetLog(
  target: OperationTarget,
  known: KnownPipeline,
  request: HandOverOptions & { readonly author: Author },
): Promise<ResetPlan> {
  const { database } = target;
  const { pipeline } = known;
  const plan = await planReset(target, known);
  await onceFree(database, known, request, async (session) => {
    // Before anything is forgotten: a slot that stays would begin behind a place that nobody knows any more.
    if (plan.slot !== null) await dropSlotOf(database, pipeline);
    if (known.delivery === "exactly-once") await moveSlots(session, database, pipeline);
    await giveUpParked(session, database, pipeline, request.author);
    await session.rows(`delete from ${database.tables.passed} where pipeline = $1`, [pipeline]);
    await forget(session, database, known);
    await noteLogChange(session, database, "LogReset", pipeline, request.author, plan);
  });
  return plan;
}

/** A running relay has registered the pipeline and does so only once: for it the lanes stay, without their places. */
async function forget(session: Session, { tables }: Database, { delivery, pipeline }: KnownPipeline): Promise<void> {
  const [served] = await session.rows(
    `select exists (select from ${tables.instances} where $1 = any(pipelines) and alive_until > clock_timestamp())`,
    [pipeline],
  );
  if (served?.[0] === "t") {
    await session.rows(`update ${tables.lanes} set position = null, ledgered_batch = 0 where pipeline = $1`, [
      pipeline,
    ]);
    return;
  }
  await session.rows(`delete from ${tables.lanes} where pipeline = $1`, [pipeline]);
  // The slots in a destination's ledger are never given to another, so the row that holds them stays.
  if (delivery === "at-least-once") await session.rows(`delete from ${tables.pipelines} where name = $1`, [pipeline]);
}

const LOOK_MS = 100;
/** A relay that has handed its lane over lets go of the stream soon. */
const LETS_GO_MS = 1_000;
const PATIENCE_MS = 5_000;

/** A slot cannot be dropped while somebody streams from it. Who owns no lane has no use for its stream. */
async function dropSlotOf(database: Database, pipeline: string): Promise<void> {
  const slot = await slotName(database, pipeline);
  const startedMs = performance.now();
  for (;;) {
    const health = await slotHealth(database, slot);
    if (health === null) return;
    const waitedMs = performance.now() - startedMs;
    if (!health.active || waitedMs >= PATIENCE_MS) return await dropSlot(database, slot);
    if (waitedMs >= LETS_GO_MS) await freeSlot(database, slot);
    await sleep(LOOK_MS);
  }
}
