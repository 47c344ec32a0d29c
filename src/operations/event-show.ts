import { isRelayError } from "../core/errors.ts";
import type { Headers } from "../core/event.ts";
import type { Session } from "../postgres/session.ts";
import { transaction } from "../postgres/transaction.ts";
import { HeadersError, readHeaders } from "../sources/postgres/headers.ts";
import { isId, pipelineIn } from "./event-filter.ts";
import { type ListedEvent, listEvents } from "./event-list.ts";
import { bytesOf, SHOWN_BYTES_MAX, type ShownPayload, shownPayload } from "./event-payload.ts";
import { type EventSource, eventSources, type OperationTarget, operationReadSettings } from "./event-source.ts";
import { isoSql } from "./event-time.ts";

export interface FailedAttempt {
  readonly at: string;
  readonly attempt: number;
  readonly reason: string;
}

export interface ShownHold {
  readonly pipeline: string;
  readonly lane: number;
  readonly state: string;
  readonly parks: boolean;
  readonly attempts: number;
  readonly firstFailedAt: string | null;
  readonly lastFailedAt: string | null;
  readonly errors: readonly FailedAttempt[];
}

export interface ShownEvent extends ListedEvent {
  readonly headers: Headers;
  readonly payload: ShownPayload;
  readonly hold: ShownHold | null;
  /** Events of its key that wait behind it; null when it could not be counted in time. */
  readonly followers: { readonly count: number; readonly isMore: boolean } | null;
}

const FOLLOWERS_MAX = 1_000;
const HEADERS_MAX = 10_000;

/** All that is known of the events with this id: one per source at most. */
export async function showEvent(target: OperationTarget, id: string, source?: string): Promise<readonly ShownEvent[]> {
  const { events } = await listEvents(target, { id, ...(source === undefined ? {} : { source }) });
  const { usable } = await eventSources(target, source);
  const shown: ShownEvent[] = [];
  for (const event of events) {
    const table = usable.find(({ name }) => name === event.source);
    if (table !== undefined) shown.push(await details(target, table, event));
  }
  return shown;
}

async function details({ database }: OperationTarget, source: EventSource, event: ListedEvent): Promise<ShownEvent> {
  const { table } = source;
  const settings = operationReadSettings(database, "showing an event", source.name);
  const content = await transaction(database.pool, settings, async (session) => {
    const [row] = await session.rows(
      `select ${table.headersJson}::text, substring(${table.payloadBytes} from 1 for ${SHOWN_BYTES_MAX}),
         octet_length(${table.payloadBytes})
       from ${table.quotedName} t where ${table.id} = $1::${table.idType}`,
      [event.id],
    );
    const hold = await holdOf(session, database.tables.holds, source, event.id);
    return { headers: headersOf(row?.[0]), payload: shownPayload(bytesOf(row?.[1]), Number(row?.[2])), hold };
  });
  const isHead = event.key !== null && content.hold?.parks === true;
  return { ...event, ...content, followers: isHead ? await countFollowers(database, source, event) : null };
}

async function holdOf(session: Session, holds: string, source: EventSource, id: string): Promise<ShownHold | null> {
  const [row] = await session.rows(
    `select h.pipeline, h.lane, h.state, h.parks, h.attempts, ${isoSql("h.first_failed_at")},
       ${isoSql("h.last_failed_at")}, h.errors::text
     from ${holds} h where ${pipelineIn("h.pipeline", source)} and h.event_id = $1
     order by h.last_failed_at desc limit 1`,
    [id],
  );
  if (row === undefined) return null;
  return {
    pipeline: row[0] ?? "",
    lane: Number(row[1]),
    state: row[2] ?? "",
    parks: row[3] === "t",
    attempts: Number(row[4]),
    firstFailedAt: row[5] ?? null,
    lastFailedAt: row[6] ?? null,
    errors: attemptsOf(row[7]),
  };
}

/** Also a person may have written them. */
export function attemptsOf(text: string | null | undefined): readonly FailedAttempt[] {
  const value: unknown = JSON.parse(text ?? "[]");
  if (!Array.isArray(value)) return [];
  return value.map((item: { readonly at?: unknown; readonly attempt?: unknown; readonly reason?: unknown } | null) => ({
    at: String(item?.at ?? ""),
    attempt: Number(item?.attempt ?? 0),
    reason: String(item?.reason ?? ""),
  }));
}

/** What is no JSON object is shown as the one text that it is. */
export function headersOf(text: string | null | undefined): Headers {
  if (text == null) return {};
  try {
    return readHeaders(text, HEADERS_MAX);
  } catch (error) {
    if (error instanceof HeadersError) return { "": text };
    throw error;
  }
}

async function countFollowers(
  database: OperationTarget["database"],
  { table, waiting, name }: EventSource,
  event: ListedEvent,
): Promise<ShownEvent["followers"]> {
  try {
    const settings = operationReadSettings(database, "counting what waits behind an event", name);
    const [row] = await transaction(database.pool, settings, (session) =>
      session.rows(
        `select count(*) from (select 1 from ${table.quotedName} t
           where ${waiting} and ${table.key} = $1 and ${table.id} <> $2::${table.idType} limit ${FOLLOWERS_MAX + 1}) w`,
        [event.key, event.id],
      ),
    );
    const count = Number(row?.[0]);
    return { count: Math.min(count, FOLLOWERS_MAX), isMore: count > FOLLOWERS_MAX };
  } catch (error) {
    if (isRelayError(error, "DATABASE_BUSY")) return null;
    throw error;
  }
}

const CHUNK_BYTES = 4 * 1024 * 1024;

/** The payload as it is stored, in pieces that fit into memory; nothing when there is no such event. */
export async function* eventPayload(target: OperationTarget, id: string, source?: string): AsyncGenerator<Buffer> {
  const { database } = target;
  const { usable } = await eventSources(target, source);
  for (const { name, table } of usable.filter((it) => isId(it.table.idType, id))) {
    for (let from = 1; ; from += CHUNK_BYTES) {
      const settings = operationReadSettings(database, "reading a payload", name);
      const [row] = await transaction(database.pool, settings, (session) =>
        session.rows(
          `select substring(${table.payloadBytes} from ${from} for ${CHUNK_BYTES})
           from ${table.quotedName} t where ${table.id} = $1::${table.idType}`,
          [id],
        ),
      );
      const piece = bytesOf(row?.[0]);
      if (piece.length > 0) yield piece;
      if (piece.length < CHUNK_BYTES) break;
    }
  }
}
