import { RelayError } from "../../../core/errors.ts";
import { quoteArray, quoteLiteral } from "../../../postgres/identifiers.ts";
import type { RelayTables } from "../../../postgres/relay-tables.ts";
import type { Session } from "../../../postgres/session.ts";
import { type LogKind, type LogRow, PARKED_COLUMNS } from "./log-kind.ts";

interface ParkingContext<Segment> {
  readonly tables: RelayTables;
  readonly pipeline: string;
  readonly kind: LogKind<Segment>;
}

/** Rows in one statement, so that its size and its payloads stay bounded. */
const PARK_ROWS_MAX = 500;

/**
 * Copies rows of the log to the table of parked events, so that the checkpoint can pass them. The caller has checked
 * the grant in the same transaction. Existing copies stay unchanged.
 */
export async function park<Segment>(
  session: Session,
  { tables, pipeline, kind }: ParkingContext<Segment>,
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

/**
 * Throws LOG_LOST when a row could not be copied: the checkpoint must not pass an event that was deleted before its
 * delivery.
 */
async function requireParked<Segment>(
  session: Session,
  tables: RelayTables,
  pipeline: string,
  rows: readonly LogRow<Segment>[],
): Promise<void> {
  const ids = rows.map(({ event }) => event.id);
  const there = await parkedPositions(session, tables, pipeline, ids);
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

/** Which of these events are parked, each with its row's position in the log. */
export async function parkedPositions(
  session: Session,
  { parked }: RelayTables,
  pipeline: string,
  ids: readonly string[],
): Promise<ReadonlyMap<string, bigint>> {
  if (ids.length === 0) return new Map();
  const rows = await session.rows(
    `select event_id, place from ${parked} where pipeline = ${quoteLiteral(pipeline)}
       and event_id = any(${quoteArray(ids)}::text[])`,
  );
  return new Map(rows.map((row) => [row[0] ?? "", BigInt(row[1] ?? 0)]));
}

/** Which of these keys have a parked event. A dead letter that does not park its key does not count. */
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
 * Settles delivered events that are not in a lane's window: parked events are deleted; the others are listed in a
 * ledger before they were read, so their ids are noted and skipped when they are read.
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
