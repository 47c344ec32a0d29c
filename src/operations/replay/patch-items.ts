import type { Database } from "../../postgres/pool.ts";
import type { Session } from "../../postgres/session.ts";
import { transaction } from "../../postgres/transaction.ts";
import type { Author } from "../audit/author.ts";
import { type MergePatch, patched, readPatch } from "../dead-letters/merge-patch.ts";
import { rewritePayload } from "../dead-letters/rewrite-payload.ts";
import { isId } from "../events/event-filter.ts";
import { bytesOf, type ShownPayload, shownPayload } from "../events/event-payload.ts";
import { type EventSource, type OperationTarget, operationReadSettings } from "../events/event-source.ts";
import type { FrozenPlan } from "./frozen-plan.ts";
import { planSources } from "./plan-sources.ts";

/** Larger payloads are not loaded by a plan; they can be edited one by one. */
const PATCHED_BYTES_MAX = 4 * 1024 * 1024;

/** An event with its patched payload. */
interface PatchedItem {
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

/** A plan's patch applied to one of its events. */
interface PatchExample {
  readonly id: string;
  readonly type: string;
  readonly source: string;
  readonly pipeline: string;
  readonly before: ShownPayload;
  /** Null when it cannot be patched; `problem` says why, and the event would be skipped. */
  readonly after: ShownPayload | null;
  readonly problem: string | null;
}

const EXAMPLES = 5;
/** Examples are chosen from this many events, one of each pipeline and type first, since these differ. */
const LOOKED_AT = 1_000;

/** Read-only. Empty for a plan without a patch or without waiting events. */
export async function previewPatch(target: OperationTarget, plan: FrozenPlan): Promise<readonly PatchExample[]> {
  if (plan.patch === null) return [];
  const { database } = target;
  const patch = readPatch(plan.patch);
  const sources = await planSources(target);
  const settings = operationReadSettings(database, "previewing a patch");
  return await transaction(database.pool, settings, async (session) => {
    const rows = await session.rows(
      `with w as (select seq, pipeline, source, event_id, event_type from ${database.tables.replayItems}
         where plan = $1 and state = 'waiting' order by seq limit ${LOOKED_AT}),
       ranked as (select w.*, row_number() over (partition by pipeline, event_type order by seq) as rank from w)
       select pipeline, source, event_id, event_type from ranked order by rank, seq limit ${EXAMPLES}`,
      [plan.id],
    );
    const examples: PatchExample[] = [];
    for (const [pipeline = "", name = "", id = "", type = ""] of rows.map((row) => row.map((it) => it ?? ""))) {
      const source = sources.waiting(name, pipeline);
      if (source === null || !isId(source.table.idType, id)) continue;
      const [item] = await patchItems(session, source, [id], patch);
      if (item !== undefined) examples.push({ type, source: name, pipeline, ...shown(target, item) });
    }
    return examples;
  });
}

function shown({ shown: rules }: OperationTarget, { after, before, id, problem }: PatchedItem) {
  const seen = (bytes: Buffer) => {
    const payload = shownPayload(bytes, bytes.length);
    return rules === undefined ? payload : rules.payload(payload);
  };
  return { id, before: seen(before), after: after === null ? null : seen(after), problem };
}
