import { displayTable } from "../../postgres/identifiers.ts";
import { needsOf } from "../../postgres/managed/log-needs.ts";
import { readManaged } from "../../postgres/managed/managed-table.ts";
import type { Database } from "../../postgres/pool.ts";
import type { KnownPipeline } from "../pipelines/pipelines.ts";

/**
 * The oldest part of a managed outbox that is past its retention and unread by this pipeline; null when there is none.
 * Only the oldest is checked: a pipeline that blocks a later one usually blocks the oldest too.
 */
export async function retentionWaitsFor(
  database: Database,
  { log, pipeline, schema, table }: KnownPipeline,
  retentionMs: number | null,
): Promise<string | null> {
  if (log !== "managed" || retentionMs === null) return null;
  const name = { schema, table };
  const facts = await readManaged(database, name);
  if (facts === null) return null;
  const oldMs = facts.nowMs - retentionMs;
  const oldest = facts.partitions.find(({ range }) => range !== null && range.toMs <= oldMs);
  if (oldest === undefined) return null;
  const { unread } = await needsOf(database, name, oldest.name, 1);
  return unread.some((it) => it.pipeline === pipeline) ? displayTable(oldest.name) : null;
}
