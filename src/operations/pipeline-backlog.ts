import { DEFAULT_LIMITS } from "../core/limits.ts";
import type { Backlog } from "../ports/queue-store.ts";
import { quoteLiteral } from "../postgres/identifiers.ts";
import type { Database } from "../postgres/pool.ts";
import { statement } from "../postgres/transaction.ts";
import { openOutboxSource } from "../sources/openoutbox/openoutbox-source.ts";
import { postgresSource } from "../sources/postgres/postgres-source.ts";
import { requireSlot, slotName } from "../sources/postgres/wal/slot.ts";
import { type OperationTarget, operationReadSettings } from "./event-source.ts";
import { openLogSource, readerOf } from "./log-source.ts";
import type { KnownPipeline } from "./pipelines.ts";
import { tableKind } from "./table-kind.ts";

/**
 * What waits for a pipeline, counted as a running relay counts it. The types that a pipeline takes are known only to the
 * program that runs it: where several share a table, each is told all that waits there.
 */
export async function pipelineBacklog(target: OperationTarget, known: KnownPipeline): Promise<Backlog> {
  const { database, columns } = target;
  const table = { schema: known.schema, table: known.table };
  const { payloadBytesMax, headersMax } = DEFAULT_LIMITS;
  const spec = { name: known.pipeline, types: null, lanes: known.lanes, attemptsMax: 1, payloadBytesMax, headersMax };
  if (known.log === "wal") return await slotBacklog(database, known.pipeline);
  if (known.log !== null) return await openLogSource(readerOf(target, known)).pipeline(spec).backlog();
  const isOpen = (await tableKind(database, table)) === "openoutbox";
  const source = isOpen ? openOutboxSource({ database, table }) : postgresSource({ database, table, columns });
  return await source.pipeline(spec).backlog();
}

/**
 * Only its reader sees what is in the write-ahead log: what is parked beside it can be counted, and no more. Throws
 * SLOT_LOST where the log cannot be read any more.
 */
async function slotBacklog(database: Database, pipeline: string): Promise<Backlog> {
  await requireSlot(database, await slotName(database, pipeline));
  const { holds, parked } = database.tables;
  const [row] = await statement(
    database.pool,
    operationReadSettings(database, "counting parked events"),
    `select count(*) filter (where h.state is distinct from 'dead'), count(*) filter (where h.state = 'dead'),
       extract(epoch from clock_timestamp() - min(p.created_at)) * 1000
     from ${parked} p left join ${holds} h on h.pipeline = p.pipeline and h.event_id = p.event_id
     where p.pipeline = ${quoteLiteral(pipeline)}`,
  );
  const [pending, dead] = [Number(row?.[0]), Number(row?.[1])];
  return { pending, dead, isEstimate: true, oldestAgeMs: row?.[2] == null ? null : Number(row[2]) };
}
