import { createHash } from "node:crypto";
import { RelayError } from "../core/errors.ts";
import type { Headers } from "../core/event.ts";
import type { EventTable } from "../postgres/event-table.ts";
import { parseTableName, quoteLiteral } from "../postgres/identifiers.ts";
import { writeSettings } from "../postgres/lanes.ts";
import type { Session } from "../postgres/session.ts";
import { transaction } from "../postgres/transaction.ts";
import type { TableShape } from "../sources/postgres/table-shape.ts";
import { noteAction } from "./audit.ts";
import type { Author } from "./author.ts";
import { resolve, stillWaiting } from "./dead-letter-change.ts";
import { isId } from "./event-filter.ts";
import { type EventSource, type OperationTarget, operationReadSettings } from "./event-source.ts";
import { requireUnredacted } from "./redact-shown.ts";
import { planSources } from "./replay/plan-sources.ts";
import { replayBatch } from "./replay.ts";

interface EditRequest {
  /** Of the event, or of the letter itself. */
  readonly id: string;
  /** Where several sources have this id. */
  readonly source?: string | undefined;
  readonly payload: Buffer;
  /** Those of before where it is left out. */
  readonly headers?: Headers | undefined;
  readonly author: Author;
}

interface Letter {
  readonly source: string;
  readonly pipeline: string;
  readonly id: string;
}

/**
 * Puts another payload, and other headers, in the place of a dead letter's and tries it again. The letter's own copy
 * keeps what was there. Returns the event's id; null where no such dead letter waits.
 */
export async function editDeadLetter(target: OperationTarget, request: EditRequest): Promise<string | null> {
  const { database } = target;
  requireUnredacted(target.shown, request.payload, request.headers);
  const letter = await findLetter(target, request);
  if (letter === null) return null;
  const { id, pipeline } = letter;
  const sources = await planSources(target);
  const source = sources.waiting(letter.source, pipeline);
  if (source === null || !isId(source.table.idType, id)) {
    throw new RelayError("CONFLICT", `${id} has no row that could be edited: ${sources.whyNot(letter.source)}`);
  }
  const settings = writeSettings(database, "editing a dead letter", letter.source);
  try {
    return await transaction(database.pool, settings, async (session) => {
      const [waiting] = await stillWaiting(session, database, { pipeline, ids: [id] });
      if (waiting === undefined) throw new RelayError("CONFLICT", `${id} is no dead letter any more`);
      const before = await rewrite(session, source, id, request);
      const batch = { source, pipeline, ids: [id] };
      const { done, otherwise } = await replayBatch(session, database.tables.holds, batch);
      if (done.length === 0) throw new RelayError("CONFLICT", `${id} cannot be tried again: ${otherwise}`);
      await resolve(session, database, pipeline, done, { author: request.author, resolution: "replayed" });
      const detail = { before, after: digest(request.payload), hasNewHeaders: request.headers !== undefined };
      await noteAction(session, database, request.author, { action: "edit", target: pipeline, eventId: id, detail });
      return id;
    });
  } catch (error) {
    throw isRefusedValue(error) ? unfitValue(error) : error;
  }
}

async function findLetter({ database }: OperationTarget, { id, source }: EditRequest): Promise<Letter | null> {
  if (id.includes("\0")) return null;
  const { schema, table } = source === undefined ? { schema: null, table: null } : parseTableName(source);
  const settings = operationReadSettings(database, "looking for a dead letter");
  const rows = await transaction(database.pool, settings, (session) =>
    session.rows(
      `select source_schema || '.' || source_table, pipeline, original_event_id from ${database.tables.failedEvents}
       where (original_event_id = $1 or id::text = $1) and resolved_at is null
         and ($2::text is null or (source_schema = $2 and source_table = $3)) order by 1, 2 limit 2`,
      [id, schema, table],
    ),
  );
  const [first, second] = rows.map((row) => ({ source: row[0] ?? "", pipeline: row[1] ?? "", id: row[2] ?? "" }));
  if (first === undefined || second === undefined) return first ?? null;
  const way = first.source === second.source ? "use the id of the letter itself" : "name the source";
  throw new RelayError("CONFIG_INVALID", `${id} is a dead letter of ${first.pipeline} and ${second.pipeline}: ${way}`);
}

/** Returns size and digest of what was there: nobody has to read a payload to see that it was changed. */
async function rewrite(session: Session, source: EventSource, id: string, { headers, payload }: EditRequest) {
  const { givenUp, table } = source;
  const columns = columnsOf(table);
  const isDead = givenUp === null ? table.unsettled : `(${table.unsettled} or ${givenUp})`;
  const isIt = `${table.id} = ${quoteLiteral(id)}::${table.idType} and ${isDead}`;
  const [row] = await session.rows(
    `select octet_length(${table.payloadBytes}), encode(sha256(${table.payloadBytes}), 'hex'),
       pg_typeof(${columns.payload}), ${columns.headers === null ? "null" : `pg_typeof(${columns.headers})`}
     from ${table.quotedName} t where ${isIt} for update`,
  );
  const [bytes, sha256, payloadType, headersType] = row ?? [];
  if (row === undefined) throw new RelayError("CONFLICT", `The row of ${id} is gone, or was delivered`);
  const assignments = [`${bare(columns.payload)} = ${payloadValue(payloadType ?? "", payload)}`];
  if (headers !== undefined) {
    if (columns.headers === null) throw new RelayError("CONFIG_INVALID", "Its table has no column for headers");
    assignments.push(`${bare(columns.headers)} = ${quoteLiteral(JSON.stringify(headers))}::${headersType}`);
  }
  await session.rows(`update ${table.quotedName} t set ${assignments.join(", ")} where ${isIt}`);
  return { bytes: Number(bytes), sha256: sha256 ?? "" };
}

function columnsOf(table: EventTable | TableShape): { readonly payload: string; readonly headers: string | null } {
  if (!("payload" in table)) return { payload: "t.payload", headers: "t.headers" };
  const headers = table.headersText === "null" ? null : table.headersText.replace(/::text$/, "");
  return { payload: table.payload.column, headers };
}

function bare(column: string): string {
  return column.replace(/^t\./, "");
}

function payloadValue(type: string, payload: Buffer): string {
  const bytes = `decode('${payload.toString("hex")}', 'hex')`;
  if (type === "bytea") return bytes;
  const text = utf8(payload);
  if (type === "json" || type === "jsonb") requireJson(text);
  return `convert_from(${bytes}, 'UTF8')::${type}`;
}

function utf8(payload: Buffer): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(payload);
  } catch {
    throw new RelayError("CONFIG_INVALID", "The payload is no UTF-8, and its column holds a text: nothing was changed");
  }
}

function requireJson(text: string): void {
  try {
    JSON.parse(text);
  } catch (error) {
    const why = error instanceof Error ? error.message : "";
    throw new RelayError("CONFIG_INVALID", `The payload is no JSON, which its column asks for: ${why}`);
  }
}

function digest(payload: Buffer): { readonly bytes: number; readonly sha256: string } {
  return { bytes: payload.length, sha256: createHash("sha256").update(payload).digest("hex") };
}

/** Values that the column's type does not take: malformed, an impossible character, too long, not allowed by a rule. */
const REFUSED_VALUES = new Set(["22P02", "22P05", "22021", "22001", "22030", "22032", "23514", "23502"]);

function isRefusedValue(error: unknown): error is Error {
  const cause = error instanceof Error ? (error.cause as { readonly code?: unknown } | undefined) : undefined;
  return typeof cause?.code === "string" && REFUSED_VALUES.has(cause.code);
}

function unfitValue({ cause }: Error): RelayError {
  const why = cause instanceof Error ? cause.message : "it does not fit";
  return new RelayError("CONFIG_INVALID", `The table does not take this: ${why}. Nothing was changed`);
}
