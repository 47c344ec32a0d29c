import { RelayError } from "../core/errors.ts";
import type { PipelineIdentity } from "../ports/queue-store.ts";
import { writeSettings } from "./lanes.ts";
import type { Database } from "./pool.ts";
import type { Session } from "./session.ts";
import { transaction } from "./transaction.ts";

/** The pipeline's identity for a destination with a ledger. At the first call it gets its own slots there. */
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

/** The cluster's system identifier; null where a managed server hides it. */
export async function systemId(session: Session): Promise<string | null> {
  const [allowed] = await session.rows("select has_function_privilege('pg_control_system()', 'execute')");
  if (allowed?.[0] !== "t") return null;
  const [row] = await session.rows("select system_identifier::text from pg_control_system()");
  return row?.[0] ?? null;
}

/**
 * Gives a pipeline slots that no lane ever had, after those of all others. Call it before the number of lanes changes.
 * The ledger's entries under the old slots are forgotten, so everything in them must be settled.
 */
export async function moveSlots(session: Session, { tables }: Database, pipeline: string): Promise<void> {
  await lockSlots(session, tables.pipelines);
  await session.rows(
    `update ${tables.pipelines} set first_slot = (select max(first_slot + lanes) from ${tables.pipelines})
     where name = $1 and first_slot is not null`,
    [pipeline],
  );
}

/** Serializes the assignment, so that no two pipelines get the same slots. */
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
