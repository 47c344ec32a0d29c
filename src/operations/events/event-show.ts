import { isRelayError } from "../../core/errors.ts";
import type { EventHeaders } from "../../core/event.ts";
import { writeSettings } from "../../postgres/lanes.ts";
import type { Session } from "../../postgres/session.ts";
import { pipelineTakes } from "../../postgres/table-takers.ts";
import { transaction } from "../../postgres/transaction.ts";
import { typeCondition } from "../../postgres/type-condition.ts";
import { type AuditEntry, listAudit, noteAction } from "../audit/audit.ts";
import type { Author } from "../audit/author.ts";
import { readDeadLetters, type ShownDeadLetter } from "../dead-letters/dead-letter-list.ts";
import { editShownTo, editsOf, type ShownEdit } from "../dead-letters/edits.ts";
import { type AttemptOfEvent, recordedAttempts, type ShownAttempt, withRemembered } from "./attempts.ts";
import { attemptsOf, type FailedAttempt, headersOf, numbered } from "./event-content.ts";
import { isId, pipelineIn } from "./event-filter.ts";
import { type GoneEvent, goneEvents } from "./event-gone.ts";
import { type ListedEvent, listEvents } from "./event-list.ts";
import { bytesOf, SHOWN_BYTES_MAX, type ShownPayload, shownPayload } from "./event-payload.ts";
import { type EventSource, eventSources, type OperationTarget, operationReadSettings } from "./event-source.ts";
import { isoSql } from "./event-time.ts";
import { shownTo } from "./redact-shown.ts";
import { traceLink } from "./trace-link.ts";

/** The hold of a shown event. */
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

/** An event with everything that is known of it. */
export interface ShownEvent extends ListedEvent {
  readonly headers: EventHeaders;
  /** Null without the right to see payloads, and when no copy exists any more. */
  readonly payload: ShownPayload | null;
  readonly hold: ShownHold | null;
  /** Events of its key that wait behind it; null when the count timed out. */
  readonly followers: { readonly count: number; readonly isMore: boolean } | null;
  readonly pipelines: readonly string[];
  /** Known attempts, oldest first. */
  readonly delivery: readonly ShownAttempt[];
  /** Actions of operators, newest first. */
  readonly audit: readonly AuditEntry[];
  /** Edits of payload and headers, newest first. */
  readonly edits: readonly ShownEdit[];
  /** Link to its trace; null where it is not configured. */
  readonly traceUrl: string | null;
  /** Id of the open dead letter; null without one. */
  readonly letterId: string | null;
  /** True when its row is gone, and these are the relay's own records. */
  readonly isGone: boolean;
}

/** Before the caller's rights are applied. */
type EventFacts = Omit<ShownEvent, "traceUrl">;

interface ShowOptions {
  readonly source?: string | undefined;
  /** False removes the payload. */
  readonly maySeePayloads?: boolean;
}

const FOLLOWERS_MAX = 1_000;
const AUDIT_MAX = 100;

/** Everything that is known of the events with this id, at most one per source. */
export async function showEvent(
  target: OperationTarget,
  id: string,
  { source, maySeePayloads = true }: ShowOptions = {},
): Promise<readonly ShownEvent[]> {
  const { events } = await listEvents(target, { id, ...(source === undefined ? {} : { source }) });
  const { usable } = await eventSources(target, source);
  const attempts = await recordedAttempts(target.database, id);
  const letters = (await readDeadLetters(target.database, id, source)).filter((letter) => letter.id === id);
  const { entries: audit } = await listAudit(target.database, { eventId: id }, { limit: AUDIT_MAX });
  const edits = await editsOf(target.database, id);
  const about = { attempts, letters, audit, edits };
  const shown: EventFacts[] = [];
  for (const event of events) {
    const table = usable.find(({ name }) => name === event.source);
    if (table !== undefined) shown.push(await details(target, table, event, about));
  }
  if (shown.length === 0)
    shown.push(...(await goneEvents(target, id, source, about)).map((gone) => ofGone(gone, about)));
  return shown.map((event) => ({
    ...shownTo(event, target.shown, maySeePayloads),
    traceUrl: traceLink(target.traceUrl, tracedBy(event)),
    edits: event.edits.map((edit) => editShownTo(edit, target.shown, maySeePayloads)),
  }));
}

/** The trace of the last attempt; without an attempt, the event's own. */
function tracedBy({ correlationId, delivery, headers }: Pick<ShownEvent, "correlationId" | "delivery" | "headers">) {
  return { correlationId, headers: { ...headers, ...delivery.findLast((it) => it.headers !== null)?.headers } };
}

/** What the relay's own tables contain on an id, for all sources. */
interface About {
  readonly attempts: readonly AttemptOfEvent[];
  readonly letters: readonly ShownDeadLetter[];
  readonly audit: readonly AuditEntry[];
  readonly edits: readonly ShownEdit[];
}

async function details(
  { database }: OperationTarget,
  source: EventSource,
  event: ListedEvent,
  about: About,
): Promise<EventFacts> {
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
  const history = historyOf(source.name, source.pipelines, content.hold, about);
  const tried = history.delivery.flatMap(({ pipeline }) => pipeline ?? []);
  return {
    ...event,
    ...content,
    hold: content.hold === null ? null : { ...content.hold, errors: numbered(content.hold.errors) },
    ...history,
    // A row of a table goes to one of the pipelines that share it.
    ...(source.reader === null
      ? {}
      : { pipelines: [...new Set([...tried, ...(event.pipeline === null ? [] : [event.pipeline])])] }),
    followers: isHead ? await countFollowers(database, source, event, content.hold!.pipeline) : null,
    isGone: false,
  };
}

function ofGone({ event, letter, pipelines }: GoneEvent, about: About): EventFacts {
  const sent = about.attempts.findLast(({ headers, pipeline }) => headers !== null && pipelines.includes(pipeline));
  return {
    ...event,
    headers: letter?.headers ?? sent?.headers ?? {},
    payload: letter?.payload ?? null,
    hold: null,
    followers: null,
    ...historyOf(event.source, pipelines, null, about),
    isGone: true,
  };
}

/** Only records of this event: another source may have another event with this id. */
function historyOf(source: string, pipelines: readonly string[], hold: ShownHold | null, about: About) {
  const letters = about.letters.filter((letter) => letter.source === source);
  const recorded = about.attempts.filter(({ pipeline }) => pipelines.includes(pipeline));
  return {
    pipelines,
    delivery: withRemembered(recorded, [...(hold === null ? [] : [hold]), ...letters]),
    audit: about.audit,
    edits: about.edits.filter(({ pipeline }) => pipelines.includes(pipeline)),
    letterId: letters.find(({ resolution }) => resolution === null)?.letterId ?? null,
  };
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

async function countFollowers(
  database: OperationTarget["database"],
  { table, waiting, name }: EventSource,
  event: ListedEvent,
  pipeline: string,
): Promise<ShownEvent["followers"]> {
  try {
    const takes = await pipelineTakes(database, pipeline);
    const isMine = takes === null ? "true" : typeCondition(table, takes, "mine");
    const settings = operationReadSettings(database, "counting what waits behind an event", name);
    const [row] = await transaction(database.pool, settings, (session) =>
      session.rows(
        `select count(*) from (select 1 from ${table.quotedName} t
           where ${waiting} and ${isMine} and ${table.key} = $1 and ${table.id} <> $2::${table.idType} limit ${FOLLOWERS_MAX + 1}) w`,
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

/** Streams the payload as it is stored, in chunks that fit into memory; empty when there is no such event. */
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

/** Records who reads a payload before a byte of it is sent. */
export async function notePayloadRead(
  database: OperationTarget["database"],
  author: Author,
  { id, source }: Pick<ShownEvent, "id" | "source">,
): Promise<void> {
  await transaction(database.pool, writeSettings(database, "noting that a payload was read"), (session) =>
    noteAction(session, database, author, { action: "payload-read", target: source, eventId: id }),
  );
}
