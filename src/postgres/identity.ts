import { RelayError } from "../core/errors.ts";
import type { PipelineIdentity } from "../ports/queue-store.ts";
import { writeSettings } from "./lanes.ts";
import type { Database } from "./pool.ts";
import type { Session } from "./session.ts";
import { transaction } from "./transaction.ts";

/** Who a pipeline is for a destination with a ledger. The first time it gets slots of its own there. */
export async function pipelineIdentity(database: Database, pipeline: string): Promise<PipelineIdentity> {
  const { identity, pipelines } = database.tables;
  return await transaction(database.pool, writeSettings(database, "reading the identity"), async (session) => {
    const [row] = await session.rows(
      `select i.uuid, i.system_id, p.lanes, p.first_slot from ${identity} i, ${pipelines} p where p.name = $1`,
      [pipeline],
    );
    if (row === undefined) throw new RelayError("SCHEMA_MISSING", `${identity} has no row`);
    const [uuid, madeOn, lanes, slot] = row;
    const firstSlot = slot == null ? await giveSlots(session, database, pipeline) : Number(slot);
    const runsOn = await systemId(session);
    const isAtHome = madeOn == null || runsOn === null || madeOn === runsOn;
    return { database: uuid ?? "", firstSlot, lanes: Number(lanes), isAtHome };
  });
}

/** Managed servers may keep it to themselves. */
export async function systemId(session: Session): Promise<string | null> {
  const [allowed] = await session.rows("select has_function_privilege('pg_control_system()', 'execute')");
  if (allowed?.[0] !== "t") return null;
  const [row] = await session.rows("select system_identifier::text from pg_control_system()");
  return row?.[0] ?? null;
}

/**
 * Gives a pipeline slots that none of its lanes ever had, behind those of all others. To be called before its number of
 * lanes changes. What the ledger has under the old ones is forgotten: everything in it must be settled.
 */
export async function moveSlots(session: Session, { tables }: Database, pipeline: string): Promise<void> {
  await lockSlots(session, tables.pipelines);
  await session.rows(
    `update ${tables.pipelines} set first_slot = (select max(first_slot + lanes) from ${tables.pipelines})
     where name = $1 and first_slot is not null`,
    [pipeline],
  );
}

/** One pipeline after the other, so that no two get the same. */
async function lockSlots(session: Session, pipelines: string): Promise<void> {
  await session.rows("select pg_advisory_xact_lock(hashtext($1))", [`${pipelines} slots`]);
}

async function giveSlots(session: Session, { tables }: Database, pipeline: string): Promise<number> {
  await lockSlots(session, tables.pipelines);
  const [row] = await session.rows(
    `update ${tables.pipelines} set
       first_slot = coalesce(first_slot, (select coalesce(max(first_slot + lanes), 0) from ${tables.pipelines}))
     where name = $1 returning first_slot`,
    [pipeline],
  );
  return Number(row?.[0]);
}
