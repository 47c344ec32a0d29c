import { createHash } from "node:crypto";
import { RelayError } from "../../core/errors.ts";
import type { EventHeaders } from "../../core/event.ts";
import type { EventTable } from "../../postgres/event-table.ts";
import { quoteLiteral } from "../../postgres/identifiers.ts";
import type { Database } from "../../postgres/pool.ts";
import type { Session } from "../../postgres/session.ts";
import type { TableShape } from "../../sources/postgres/table-shape.ts";
import type { Author } from "../audit/author.ts";
import { headersOf } from "../events/event-content.ts";
import type { EventSource } from "../events/event-source.ts";

interface Rewrite {
  readonly source: EventSource;
  readonly pipeline: string;
  readonly id: string;
  readonly payload: Buffer;
  /** Unchanged when absent. */
  readonly headers?: EventHeaders | undefined;
  readonly author: Author;
  /** The plan that makes the change; null for an edit by hand. */
  readonly plan?: string | undefined;
}

interface Digest {
  readonly bytes: number;
  readonly sha256: string;
}

/**
 * Replaces payload and headers in the row of an event, and stores both versions. Returns sizes and digests for the
 * audit, which proves the change without showing the payload.
 */
export async function rewritePayload(
  session: Session,
  { tables }: Database,
  rewrite: Rewrite,
): Promise<{ readonly before: Digest; readonly after: Digest }> {
  const { author, headers, id, payload, pipeline, plan, source } = rewrite;
  const { table } = source;
  const columns = columnsOf(table);
  const isIt = rowCondition(source, id);
  const [row] = await session.rows(
    `select octet_length(${table.payloadBytes}), encode(sha256(${table.payloadBytes}), 'hex'),
       pg_typeof(${columns.payload}), ${columns.headers === null ? "null" : `pg_typeof(${columns.headers})`},
       ${table.headersJson}::text
     from ${table.quotedName} t where ${isIt} for update`,
  );
  const [bytes, sha256, payloadType, headersType, headersText] = row ?? [];
  if (row === undefined) throw new RelayError("CONFLICT", `The row of ${id} is gone, or was delivered`);
  const assignments = [`${bare(columns.payload)} = ${payloadValue(payloadType ?? "", payload)}`];
  if (headers !== undefined) {
    if (columns.headers === null) throw new RelayError("CONFIG_INVALID", "The event's table has no column for headers");
    assignments.push(`${bare(columns.headers)} = ${quoteLiteral(JSON.stringify(headers))}::${headersType}`);
  }
  const headersBefore = headersOf(headersText);
  const kept = [headersBefore, headers ?? headersBefore].map((it) => JSON.stringify(it));
  await session.rows(
    `insert into ${tables.edits} (pipeline, event_id, actor, reason, plan, payload_before, payload_after,
       headers_before, headers_after)
     select $1, $2, $3, $4, $5::uuid, ${table.payloadBytes}, decode($6, 'hex'), $7::jsonb, $8::jsonb
     from ${table.quotedName} t where ${isIt}`,
    [pipeline, id, author.by, author.reason ?? null, plan ?? null, payload.toString("hex"), ...kept],
  );
  await session.rows(`update ${table.quotedName} t set ${assignments.join(", ")} where ${isIt}`);
  return { before: { bytes: Number(bytes), sha256: sha256 ?? "" }, after: digest(payload) };
}

/** Selects an undelivered row, also one that was given up. */
function rowCondition({ givenUp, table }: EventSource, id: string): string {
  const isDead = givenUp === null ? table.unsettled : `(${table.unsettled} or ${givenUp})`;
  return `${table.id} = ${quoteLiteral(id)}::${table.idType} and ${isDead}`;
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
    throw new RelayError(
      "CONFIG_INVALID",
      "The payload is not UTF-8, but its column is a text type: nothing was changed",
    );
  }
}

function requireJson(text: string): void {
  try {
    JSON.parse(text);
  } catch (error) {
    const why = error instanceof Error ? error.message : "";
    throw new RelayError("CONFIG_INVALID", `The payload is not JSON, but its column is a JSON type: ${why}`);
  }
}

function digest(payload: Buffer): { readonly bytes: number; readonly sha256: string } {
  return { bytes: payload.length, sha256: createHash("sha256").update(payload).digest("hex") };
}
