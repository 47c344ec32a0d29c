import { RelayError } from "../../core/errors.ts";
import type { EventHeaders } from "../../core/event.ts";
import { parseTableName } from "../../postgres/identifiers.ts";
import { writeSettings } from "../../postgres/lanes.ts";
import { transaction } from "../../postgres/transaction.ts";
import { noteAction } from "../audit/audit.ts";
import type { Author } from "../audit/author.ts";
import { isId } from "../events/event-filter.ts";
import { type OperationTarget, operationReadSettings } from "../events/event-source.ts";
import { requireUnredacted } from "../events/redact-shown.ts";
import { planSources } from "../replay/plan-sources.ts";
import { replayBatch } from "../replay/replay.ts";
import { resolve, stillWaiting } from "./dead-letter-change.ts";
import { rewritePayload } from "./rewrite-payload.ts";

interface EditRequest {
  /** Id of the event, or of the letter itself. */
  readonly id: string;
  /** Required where several sources have this id. */
  readonly source?: string | undefined;
  readonly payload: Buffer;
  /** Unchanged when absent. */
  readonly headers?: EventHeaders | undefined;
  readonly author: Author;
}

interface Letter {
  readonly source: string;
  readonly pipeline: string;
  readonly id: string;
}

/**
 * Replaces payload and headers of a dead letter and replays it. The letter's copy and the list of edits keep the
 * previous content. Returns the event's id; null without such an open dead letter.
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
    throw new RelayError("CONFLICT", `${id} has no row to edit: ${sources.whyNot(letter.source)}`);
  }
  const settings = writeSettings(database, "editing a dead letter", letter.source);
  try {
    return await transaction(database.pool, settings, async (session) => {
      const [waiting] = await stillWaiting(session, database, { pipeline, ids: [id] });
      if (waiting === undefined)
        throw new RelayError("CONFLICT", `${id} is no longer a dead letter: another change was faster`);
      const { author, headers, payload } = request;
      const rewritten = await rewritePayload(session, database, { source, pipeline, id, payload, headers, author });
      const batch = { source, pipeline, ids: [id] };
      const { done, otherwise } = await replayBatch(session, database.tables.holds, batch);
      if (done.length === 0) throw new RelayError("CONFLICT", `${id} cannot be replayed: ${otherwise}`);
      await resolve(session, database, pipeline, done, { author: request.author, resolution: "replayed" });
      const detail = { ...rewritten, hasNewHeaders: headers !== undefined };
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

/**
 * SQLSTATEs of values that the column does not accept: malformed, an invalid character, too long, or against a
 * constraint.
 */
const REFUSED_VALUES = new Set(["22P02", "22P05", "22021", "22001", "22030", "22032", "23514", "23502"]);

function isRefusedValue(error: unknown): error is Error {
  const cause = error instanceof Error ? (error.cause as { readonly code?: unknown } | undefined) : undefined;
  return typeof cause?.code === "string" && REFUSED_VALUES.has(cause.code);
}

function unfitValue({ cause }: Error): RelayError {
  const why = cause instanceof Error ? cause.message : "the value does not fit";
  return new RelayError("CONFIG_INVALID", `The table rejects the new content: ${why}. Nothing was changed`);
}
