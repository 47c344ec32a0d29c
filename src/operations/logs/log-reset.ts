import { setTimeout as sleep } from "node:timers/promises";
import { moveSlots } from "../../postgres/identity.ts";
import type { Database } from "../../postgres/pool.ts";
import type { Session } from "../../postgres/session.ts";
import { dropSlot, freeSlot, slotHealth, slotName } from "../../sources/postgres/wal/slot.ts";
import { noteAction } from "../audit/audit.ts";
import type { Author } from "../audit/author.ts";
import type { OperationTarget } from "../events/event-source.ts";
import type { HandOverOptions } from "../pipelines/hand-over.ts";
import type { KnownPipeline } from "../pipelines/pipelines.ts";
import { parkedCounts, slotOf } from "./log-list.ts";
import { giveUpParked, onceFree, requireLog } from "./log-seek.ts";

/** What a reset would do. */
export interface ResetPlan {
  readonly pipeline: string;
  /** Events that wait beside the log and would be dropped. */
  readonly parked: number;
  /** The replication slot that would be dropped. */
  readonly slot: string | null;
}

/** What a reset would do. Read-only. */
export async function planReset({ database }: OperationTarget, known: KnownPipeline): Promise<ResetPlan> {
  const { pipeline } = known;
  const slot = requireLog(known) === "wal" ? ((await slotOf(database, pipeline))?.name ?? null) : null;
  return { pipeline, parked: (await parkedCounts(database)).get(pipeline) ?? 0, slot };
}

/**
 * Deletes a pipeline's progress, as if it had never run: it no longer blocks the pruning of its log, and its next run
 * starts at LOG_START. Dead letters are discarded; their copies stay.
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
    // Before any progress is deleted: a remaining slot would start behind a position that is no longer known.
    if (plan.slot !== null) await dropSlotOf(database, pipeline);
    if (known.delivery === "exactly-once") await moveSlots(session, database, pipeline);
    await giveUpParked(session, database, pipeline, request.author);
    await session.rows(`delete from ${database.tables.passed} where pipeline = $1`, [pipeline]);
    await forget(session, database, known);
    await noteAction(session, database, request.author, { action: "log-reset", target: pipeline, detail: plan });
  });
  return plan;
}

/** A running relay registers its pipeline only once, so for it the lanes must stay, without their positions. */
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
  // Slots in a destination's ledger are never reused, so the row that owns them stays.
  if (delivery === "at-least-once") await session.rows(`delete from ${tables.pipelines} where name = $1`, [pipeline]);
}

const LOOK_MS = 100;
/** A relay that has handed its lane over closes its stream soon. */
const LETS_GO_MS = 1_000;
const TIMEOUT_MS = 5_000;

/** A slot cannot be dropped while it is streamed. An instance without a lane does not need its stream. */
export async function dropSlotOf(database: Database, pipeline: string): Promise<void> {
  const slot = await slotName(database, pipeline);
  const startedMs = performance.now();
  for (;;) {
    const health = await slotHealth(database, slot);
    if (health === null) return;
    const waitedMs = performance.now() - startedMs;
    if (!health.active || waitedMs >= TIMEOUT_MS) return await dropSlot(database, slot);
    if (waitedMs >= LETS_GO_MS) await freeSlot(database, slot);
    await sleep(LOOK_MS);
  }
}
