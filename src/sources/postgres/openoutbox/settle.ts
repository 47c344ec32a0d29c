import { isRelayError } from "../../../core/errors.ts";
import type { Failure, Settlement, SettleResult } from "../../../ports/queue-store.ts";
import { isRowError } from "../../../postgres/errors.ts";
import { deleteHolds, failureColumns, writeFailures, writeSuspects } from "../../../postgres/holds.ts";
import { displayTable, quoteArray } from "../../../postgres/identifiers.ts";
import { fenced, requireGrant, writeSettings } from "../../../postgres/lanes.ts";
import type { Database } from "../../../postgres/pool.ts";
import type { Row, Session } from "../../../postgres/session.ts";
import { statement, transaction } from "../../../postgres/transaction.ts";
import { checkAtOnce, holdUnmarked, writeApart } from "../../../postgres/unmarked.ts";
import { BY_ID_SETTINGS, type Queue } from "./claim.ts";
import { oursCondition, type QueueScope } from "./openoutbox-table.ts";
import { failSql, markSql } from "./settle.sql.ts";

/**
 * Writes the outcomes of claimed events. Without failures it is one statement in one round trip; its fence makes it
 * change nothing once the lane has a new owner. Failures follow in the same transaction, behind the fence's lock on the
 * lane's row.
 */
export async function settle(queue: Queue, settlement: Settlement): Promise<SettleResult> {
  try {
    return await settleTogether(queue, settlement);
  } catch (error) {
    if (!isRelayError(error) || !isRowError(error.cause)) throw error;
    return await settleApart(queue, settlement);
  }
}

function settingsOf(database: Database, scope: QueueScope) {
  return { ...writeSettings(database, "settling", displayTable(scope.shape.name)), settings: BY_ID_SETTINGS };
}

/** Settles where a row makes the statement fail: a trigger raises an error, or a constraint rejects the new values. */
async function settleApart({ database, scope }: Queue, settlement: Settlement): Promise<SettleResult> {
  const { sending: _, ...plain } = settlement;
  const nothing = { failed: [], handedBack: [], releasedHolds: [], suspects: [] };
  return await transaction(database.pool, settingsOf(database, scope), async (session) => {
    await checkAtOnce(session);
    const mark = async (part: Settlement) => missingOf((await session.rows(markSql(scope, part)))[0], scope, part);
    await mark({ ...settlement, delivered: [] });
    const left: string[] = [];
    const refused = await writeApart(session, settlement.delivered, async (delivered) => {
      left.push(...(await mark({ ...plain, ...nothing, previousBatch: plain.batch, delivered })));
    });
    const { missing, unmarked } = await lookAgain(session, scope, settlement, [...left, ...refused.ids]);
    const unsuspected = await suspect(session, scope, settlement);
    const { gone, dead } = await fail(session, scope, settlement);
    const refusal = refused.reason ?? undefined;
    return { missing: [...missing, ...unsuspected, ...gone], unmarked, dead, refusal };
  });
}

async function settleTogether({ database, scope }: Queue, settlement: Settlement): Promise<SettleResult> {
  const settings = settingsOf(database, scope);
  const mark = markSql(scope, settlement);
  if (settlement.failed.length === 0 && settlement.suspects.length === 0) {
    const [row] = await statement(database.pool, settings, mark);
    const unmarked = missingOf(row, scope, settlement);
    if (unmarked.length === 0) return { missing: [] };
    return await transaction(database.pool, settings, async (session) => {
      await requireGrant(session, database, scope.pipeline, settlement.grant);
      return await lookAgain(session, scope, settlement, unmarked);
    });
  }
  return await transaction(database.pool, settings, async (session) => {
    const [row] = await session.rows(mark);
    const { missing, unmarked } = await lookAgain(session, scope, settlement, missingOf(row, scope, settlement));
    const unsuspected = await suspect(session, scope, settlement);
    const { gone, dead } = await fail(session, scope, settlement);
    return { missing: [...missing, ...unsuspected, ...gone], unmarked, dead };
  });
}

/**
 * Separates delivered rows that are gone or claimed by others from rows that the database does not allow to be marked.
 * The latter are held. A pending row may have been released while it was being sent, because its claim was too old;
 * that is no fault if it can be marked later.
 */
async function lookAgain(session: Session, scope: QueueScope, { grant }: Settlement, ids: readonly string[]) {
  const holdScope = { tables: scope.tables, pipeline: scope.pipeline, lane: grant.lane };
  const still = (unsettled: string) => ({ ...scope.shape, unsettled });
  const ours = await holdUnmarked(session, holdScope, still(oursCondition(grant.owner)), ids, "refused");
  const others = ids.filter((id) => !ours.has(id));
  const freed = await holdUnmarked(session, holdScope, still("t.status = 'PENDING'"), others, "locked");
  const unmarked = new Map([...ours, ...freed]);
  return { missing: ids.filter((id) => !unmarked.has(id)), unmarked };
}

function missingOf(row: Row | undefined, scope: QueueScope, { grant, delivered }: Settlement): readonly string[] {
  if (row?.[0] !== "1") throw fenced(scope.pipeline, grant);
  if (row[1] == null) return [];
  const marked: unknown = JSON.parse(row[1]);
  const ids = new Set(Array.isArray(marked) ? marked : []);
  return delivered.filter((id) => !ids.has(id));
}

async function suspect(session: Session, scope: QueueScope, { grant, suspects }: Settlement): Promise<string[]> {
  if (suspects.length === 0) return [];
  const ids = suspects.map(({ id }) => id);
  const rows = await session.rows(
    `select t.event_id from ${scope.shape.quotedName} t
     where t.event_id = any(${quoteArray(ids)}::uuid[]) and ${oursCondition(grant.owner)}`,
  );
  const ours = new Set(rows.map((row) => row[0]));
  const holdScope = { tables: scope.tables, pipeline: scope.pipeline, lane: grant.lane };
  await writeSuspects(
    session,
    holdScope,
    suspects.filter(({ id }) => ours.has(id)),
  );
  return ids.filter((id) => !ours.has(id));
}

/** Writes the rows first: rows that are no longer ours get neither a hold nor a dead letter. */
async function fail(session: Session, scope: QueueScope, { grant, failed }: Settlement) {
  if (failed.length === 0) return { gone: [], dead: [] };
  const [ids, , reasons, attempts, delays] = failureColumns(failed);
  const values = [scope.pipeline, ids, reasons, attempts, delays];
  const rows = await session.rows(failSql(scope, grant.owner), values);
  const ours = new Set(rows.map((row) => row[0]));
  const written = failed.filter(({ id }) => ours.has(id));
  const holdScope = { tables: scope.tables, pipeline: scope.pipeline, lane: grant.lane };
  const { dead } = await writeFailures(session, holdScope, scope.shape, written);
  await deleteHolds(
    session,
    holdScope,
    written.filter(isDeadAndAlone).map(({ id }) => id),
  );
  return { gone: failed.filter(({ id }) => !ours.has(id)).map(({ id }) => id), dead };
}

/** Dead rows are never read again, so a hold is needed only to park the key. */
function isDeadAndAlone({ key, next }: Failure): boolean {
  return next.kind === "dead" && (key === null || !next.parks);
}
