import type { Hold } from "../../core/hold.ts";
import type { Grant } from "../../ports/queue-store.ts";
import { readHolds } from "../../postgres/holds.ts";
import { displayTable, quoteArray } from "../../postgres/identifiers.ts";
import { requireGrant, writeSettings } from "../../postgres/lanes.ts";
import type { Database } from "../../postgres/pool.ts";
import type { RelayTables } from "../../postgres/relay-tables.ts";
import type { Session } from "../../postgres/session.ts";
import { transaction } from "../../postgres/transaction.ts";
import { checkAtOnce, outlastedLocksSql, unmarkedSql, writeApart } from "../../postgres/unmarked.ts";
import { type TableShape, undelivered } from "./table-shape.ts";

/** Each hold is one lookup by primary key. A join that scans the whole table would be cheap only by its estimate. */
export const REVIEW_SETTINGS = { enable_hashjoin: "off", enable_mergejoin: "off", enable_seqscan: "off", jit: "off" };

/**
 * Makes the holds follow what operators and other relays do to the rows. The order matters: rows are marked first, so
 * that their holds can be dropped in the same pass.
 */
export async function reviewHolds(
  database: Database,
  pipeline: string,
  shape: TableShape,
  grant: Grant,
): Promise<readonly Hold[]> {
  const settings = {
    ...writeSettings(database, "reviewing the holds", displayTable(shape.name)),
    settings: REVIEW_SETTINGS,
  };
  return await transaction(database.pool, settings, async (session) => {
    await requireGrant(session, database, pipeline, grant);
    const scope = [pipeline, grant.lane];
    // Where nothing is ever marked, nothing can stay unmarked.
    if (shape.markDelivered !== "") await markAgain(session, database.tables, shape, scope);
    if (shape.givenUp !== null) await session.rows(reviveHoldsSql(database.tables, shape), scope);
    await session.rows(dropVoidHoldsSql(database.tables, shape, grant.owner), scope);
    await session.rows(outlastedLocksSql(database), scope);
    return await readHolds(session, database.tables, pipeline, [grant.lane]);
  });
}

/**
 * Deletes holds whose row is gone, or was delivered or claimed by another relay. A dead hold stays while its row is
 * pending or dead; an unmarked hold stays until its row can be marked. The dead letter always stays: it may be the only
 * copy. Takes `$1` pipeline and `$2` lane.
 */
export const dropVoidHoldsSql = ({ holds }: RelayTables, shape: TableShape, owner: string): string => {
  const { claims, givenUp, id, idType, main, quotedName, unsettled } = shape;
  const stays = [claims === undefined ? unsettled : main];
  if (givenUp !== null) stays.push(`(h.state = 'dead' and ${givenUp})`);
  if (claims !== undefined) {
    stays.push(`(${claims.isOurs(owner)})`, `(${claims.claimed} and ${unmarkedSql("h.")} is not null)`);
  }
  return `delete from ${holds} h where h.pipeline = $1 and h.lane = $2 and not exists (
  select from ${quotedName} t
  where ${id} = h.event_id::${idType} and (${stays.join(" or ")}))`;
};

/** Marks delivered rows that could not be marked before. Rows that the database still refuses stay as they are. */
async function markAgain(
  session: Session,
  tables: RelayTables,
  shape: TableShape,
  scope: readonly unknown[],
): Promise<void> {
  const rows = await session.rows(unmarkedIdsSql(tables, shape), scope);
  if (rows.length === 0) return;
  await checkAtOnce(session);
  const ids = rows.map((row) => row[0] ?? "");
  await writeApart(session, ids, async (part) => {
    await session.rows(
      `update ${shape.quotedName} t set ${shape.markDelivered}
       where ${shape.id} = any(${quoteArray(part)}::${shape.idType}[]) and ${undelivered(shape)}`,
    );
  });
}

const MARKED_AGAIN_MAX = 1_000;

/**
 * Delivered rows that could not be marked before, in another order each time, so that none waits behind rows that are
 * always refused. Locked rows are skipped until the next review. Takes `$1` pipeline and `$2` lane.
 */
const unmarkedIdsSql = ({ holds }: RelayTables, shape: TableShape): string => `
select ${shape.id}::text from ${holds} h join ${shape.quotedName} t on ${shape.id} = h.event_id::${shape.idType}
where h.pipeline = $1 and h.lane = $2 and ${unmarkedSql("h.")} is not null and ${undelivered(shape)}
order by pg_catalog.random() limit ${MARKED_AGAIN_MAX}
for update of t skip locked`;

const revived = ({ claims }: TableShape) => claims?.revived ?? "attempts = 0, next_at = clock_timestamp()";

/**
 * Where death is stored in the row, a dead row that is pending again was reset by an operator and is no dead letter any
 * more. It is retried at once from the first attempt, unless the row itself says otherwise. Takes `$1` pipeline and
 * `$2` lane.
 */
const reviveHoldsSql = ({ holds, failedEvents }: RelayTables, shape: TableShape): string => `
with revived as (
  update ${holds} h set state = 'retrying', crashes = 0, parks = h.event_key is not null, ${revived(shape)}
  from ${shape.quotedName} t
  where h.pipeline = $1 and h.lane = $2 and h.state = 'dead'
    and ${shape.id} = h.event_id::${shape.idType} and ${shape.main}
  returning h.event_id)
delete from ${failedEvents} d using revived r where d.pipeline = $1 and d.original_event_id = r.event_id`;
