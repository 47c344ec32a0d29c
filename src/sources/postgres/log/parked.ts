import { RelayError } from "../../../core/errors.ts";
import { quoteArray, quoteLiteral } from "../../../postgres/identifiers.ts";
import type { RelayTables } from "../../../postgres/relay-tables.ts";
import type { Session } from "../../../postgres/session.ts";
import { type LogKind, type LogRow, PARKED_COLUMNS } from "./log-kind.ts";

interface ParkingPlace<Segment> {
  readonly tables: RelayTables;
  readonly pipeline: string;
  readonly kind: LogKind<Segment>;
}

/** Rows in one statement, so that neither it nor its payloads grow without bound. */
const PARK_ROWS_MAX = 500;

/**
 * Copies rows of the log to where they wait without keeping the reading back. The caller has checked the grants in the
 * same transaction. Those that are there already stay as they are.
 */
export async function park<Segment>(
  session: Session,
  { tables, pipeline, kind }: ParkingPlace<Segment>,
  rows: readonly LogRow<Segment>[],
): Promise<void> {
  for (let from = 0; from < rows.length; from += PARK_ROWS_MAX) {
    const some = rows.slice(from, from + PARK_ROWS_MAX);
    const into = `insert into ${tables.parked} (pipeline, ${PARKED_COLUMNS.join(", ")})`;
    const kept = "on conflict (pipeline, event_id) do nothing";
    const select = kind.selectSql?.(some);
    if (select === undefined) {
      await session.rows(`${into} select $1::text, ${EVENT_LIST} ${kept}`, [pipeline, ...eventColumns(kind, some)]);
    } else {
      const columns = PARKED_COLUMNS.map((column) => `r.${column}`).join(", ");
      const from = `(${select}) as r (${PARKED_COLUMNS.join(", ")})`;
      await session.rows(`${into} select ${quoteLiteral(pipeline)}, ${columns} from ${from} ${kept}`);
      await requireParked(session, tables, pipeline, some);
    }
  }
}

/** A row that cannot be read again is not passed: whoever deletes from the log before it is delivered is told. */
async function requireParked<Segment>(
  session: Session,
  tables: RelayTables,
  pipeline: string,
  rows: readonly LogRow<Segment>[],
): Promise<void> {
  const ids = rows.map(({ event }) => event.id);
  const there = new Set(await parkedIds(session, tables, pipeline, ids));
  const lost = ids.find((id) => !there.has(id));
  if (lost === undefined) return;
  const what = `Event ${lost} of ${pipeline} was deleted from its log before it was delivered.`;
  throw new RelayError("LOG_LOST", what);
}

const EVENT_LIST = `e.* from unnest($2::numeric[], $3::text[], $4::text[], $5::text[], $6::bytea[], $7::json[],
  $8::text[], $9::timestamptz[]) as e (${PARKED_COLUMNS.join(", ")})`;

function eventColumns<Segment>(kind: LogKind<Segment>, rows: readonly LogRow<Segment>[]): readonly unknown[] {
  const events = rows.map(({ event }) => event);
  return [
    rows.map((row) => String(kind.orderOf(row))),
    events.map(({ id }) => id),
    events.map(({ type }) => type),
    events.map(({ key }) => key),
    events.map(({ payload }) => payload),
    events.map(({ headers }) => JSON.stringify(headers)),
    events.map(({ correlationId }) => correlationId),
    events.map(({ createdAt }) => createdAt),
  ];
}

/** Which of these events are parked. */
export async function parkedIds(
  session: Session,
  { parked }: RelayTables,
  pipeline: string,
  ids: readonly string[],
): Promise<readonly string[]> {
  if (ids.length === 0) return [];
  const rows = await session.rows(
    `select event_id from ${parked} where pipeline = ${quoteLiteral(pipeline)}
       and event_id = any(${quoteArray(ids)}::text[])`,
  );
  return rows.map((row) => row[0] ?? "");
}

/** Which of these keys have an event that waits here. One that was given up and lets the others go does not count. */
export async function closedKeys(
  session: Session,
  { holds, parked }: RelayTables,
  pipeline: string,
  keys: readonly string[],
): Promise<readonly string[]> {
  if (keys.length === 0) return [];
  const rows = await session.rows(
    `select k from unnest(${quoteArray(keys)}::text[]) k where exists (
       select from ${parked} p where p.pipeline = ${quoteLiteral(pipeline)} and p.event_key = k and not exists (
         select from ${holds} h where h.pipeline = p.pipeline and h.event_id = p.event_id
           and h.state = 'dead' and not h.parks))`,
  );
  return rows.map((row) => row[0] ?? "");
}

/**
 * Ends the waiting of delivered events that are not in a lane's window: they were parked, or the ledger knows them
 * before they were read, and then they are to be passed when the reading comes by.
 */
export async function settleElsewhere(
  session: Session,
  { parked, passed }: RelayTables,
  pipeline: string,
  lane: number,
  ids: readonly string[],
): Promise<readonly string[]> {
  if (ids.length === 0) return [];
  const rows = await session.rows(
    `with done as (delete from ${parked} where pipeline = $1 and event_id = any($3::text[]) returning event_id)
     insert into ${passed} (pipeline, lane, event_id)
     select $1, $2, id from unnest($3::text[]) id where id not in (select event_id from done)
     on conflict do nothing returning event_id`,
    [pipeline, lane, ids],
  );
  return rows.map((row) => row[0] ?? "");
}
