import type { Database } from "../../postgres/pool.ts";
import type { Session } from "../../postgres/session.ts";
import type { Author } from "../audit/author.ts";
import { type MergePatch, patched } from "../dead-letters/merge-patch.ts";
import { rewritePayload } from "../dead-letters/rewrite-payload.ts";
import { bytesOf } from "../events/event-payload.ts";
import type { EventSource } from "../events/event-source.ts";

/** Larger payloads are not loaded by a plan; they can be edited one by one. */
const PATCHED_BYTES_MAX = 4 * 1024 * 1024;

/** An event with its patched payload. */
export interface PatchedItem {
  readonly id: string;
  readonly before: Buffer;
  /** Null when it cannot be patched; `problem` says why. */
  readonly after: Buffer | null;
  readonly problem: string | null;
}

/** Applies the patch to these events in memory. Events whose row is gone are left out. */
export async function patchItems(
  session: Session,
  { table }: EventSource,
  ids: readonly string[],
  patch: MergePatch,
): Promise<readonly PatchedItem[]> {
  const rows = await session.rows(
    `select ${table.id}::text, case when octet_length(${table.payloadBytes}) <= ${PATCHED_BYTES_MAX} then ${table.payloadBytes} end
     from ${table.quotedName} t where ${table.id} = any($1::text[]::${table.idType}[])`,
    [ids],
  );
  return rows.map((row) => patchedItem(row[0] ?? "", row[1] ?? null, patch));
}

function patchedItem(id: string, hex: string | null, patch: MergePatch): PatchedItem {
  if (hex === null)
    return { id, before: Buffer.alloc(0), after: null, problem: "its payload is too large for a patch" };
  const before = bytesOf(hex);
  const result = patchedText(before, patch);
  if ("problem" in result) return { id, before, after: null, problem: result.problem };
  return { id, before, after: Buffer.from(result.text, "utf8"), problem: null };
}

function patchedText(before: Buffer, patch: MergePatch) {
  try {
    return patched(new TextDecoder("utf-8", { fatal: true }).decode(before), patch);
  } catch (error) {
    if (error instanceof TypeError) return { problem: "its payload is not UTF-8" };
    throw error;
  }
}

interface PatchWrite {
  readonly source: EventSource;
  readonly pipeline: string;
  readonly author: Author;
  readonly plan: string;
}

/** Writes the patched payloads of the events that are sent. */
export async function writePatched(
  session: Session,
  database: Database,
  items: readonly PatchedItem[],
  { author, pipeline, plan, source }: PatchWrite,
): Promise<void> {
  for (const { after, id } of items) {
    if (after === null) continue;
    await rewritePayload(session, database, { source, pipeline, id, payload: after, author, plan });
  }
}
