import { isRelayError } from "../core/errors.ts";
import type { Headers } from "../core/event.ts";
import { writeSettings } from "../postgres/lanes.ts";
import type { Session } from "../postgres/session.ts";
import { transaction } from "../postgres/transaction.ts";
import { type AttemptOfEvent, recordedAttempts, type ShownAttempt, withRemembered } from "./attempts.ts";
import { type AuditEntry, listAudit, noteAction } from "./audit.ts";
import type { Author } from "./author.ts";
import { type ShownDeadLetter, showDeadLetters } from "./dead-letter-list.ts";
import { attemptsOf, type FailedAttempt, headersOf } from "./event-content.ts";
import { isId, pipelineIn } from "./event-filter.ts";
import { type GoneEvent, goneEvents } from "./event-gone.ts";
import { type ListedEvent, listEvents } from "./event-list.ts";
import { bytesOf, SHOWN_BYTES_MAX, type ShownPayload, shownPayload } from "./event-payload.ts";
import { type EventSource, eventSources, type OperationTarget, operationReadSettings } from "./event-source.ts";
import { isoSql } from "./event-time.ts";
import { shownTo } from "./redact-shown.ts";

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
  /** Null for those who may not see payloads, and where nobody has it any more. */
  readonly payload: ShownPayload | null;
  readonly hold: ShownHold | null;
  /** Events of its key that wait behind it; null when it could not be counted in time. */
  readonly followers: { readonly count: number; readonly isMore: boolean } | null;
  readonly pipelines: readonly string[];
  /** What is known of its attempts, the oldest first. */
  readonly delivery: readonly ShownAttempt[];
  /** What people did with it, the last first. */
  readonly audit: readonly AuditEntry[];
  /** Of the dead letter that waits; null without one. */
  readonly letterId: string | null;
  /** True when there is no row of it to be seen, and this is what the relay itself remembers. */
  readonly isGone: boolean;
}

interface ShowOptions {
  readonly source?: string | undefined;
  /** False leaves the payload out. */
  readonly maySeePayloads?: boolean;
}

const FOLLOWERS_MAX = 1_000;
const AUDIT_MAX = 100;

/** All that is known of the events with this id: one per source at most. */
export async function showEvent(
  target: OperationTarget,
  id: string,
  { source, maySeePayloads = true }: ShowOptions = {},
): Promise<readonly ShownEvent[]> {
  const { events } = await listEvents(target, { id, ...(source === undefined ? {} : { source }) });
  const { usable } = await eventSources(target, source);
  const attempts = await recordedAttempts(target.database, id);
  const letters = (await showDeadLetters(target.database, id, source)).filter((letter) => letter.id === id);
  const { entries: audit } = await listAudit(target.database, { eventId: id }, { limit: AUDIT_MAX });
  const about = { attempts, letters, audit };
  const shown: ShownEvent[] = [];
  for (const event of events) {
    const table = usable.find(({ name }) => name === event.source);
    if (table !== undefined) shown.push(await details(target, table, event, about));
  }
  if (shown.length === 0)
    shown.push(...(await goneEvents(target, id, source, about)).map((gone) => ofGone(gone, about)));
  return shown.map((event) => shownTo(event, target.shown, maySeePayloads));
}

/** What the relay's own tables know of an id, whatever the source. */
interface About {
  readonly attempts: readonly AttemptOfEvent[];
  readonly letters: readonly ShownDeadLetter[];
  readonly audit: readonly AuditEntry[];
}

async function details(
  { database }: OperationTarget,
  source: EventSource,
  event: ListedEvent,
  about: About,
): Promise<ShownEvent> {
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
  return {
    ...event,
    ...content,
    ...historyOf(source.name, source.pipelines, content.hold, about),
    followers: isHead ? await countFollowers(database, source, event) : null,
    isGone: false,
  };
}

function ofGone({ event, letter, pipelines }: GoneEvent, about: About): ShownEvent {
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

/** Of this event alone: the same id may be another's in another source. */
function historyOf(source: string, pipelines: readonly string[], hold: ShownHold | null, about: About) {
  const letters = about.letters.filter((letter) => letter.source === source);
  const recorded = about.attempts.filter(({ pipeline }) => pipelines.includes(pipeline));
  return {
    pipelines,
    delivery: withRemembered(recorded, [...(hold === null ? [] : [hold]), ...letters]),
    audit: about.audit,
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

/** Who took a payload away is written down before a byte of it is sent. */
export async function notePayloadRead(
  database: OperationTarget["database"],
  author: Author,
  { id, source }: Pick<ShownEvent, "id" | "source">,
): Promise<void> {
  await transaction(database.pool, writeSettings(database, "noting that a payload was read"), (session) =>
    noteAction(session, database, author, { action: "payload-read", target: source, eventId: id }),
  );
}
