import { isRelayError, reasonOf } from "../../core/errors.ts";
import { DEFAULT_LIMITS } from "../../core/limits.ts";
import type { Backlog, SourceBacklog, Unrouted } from "../../ports/queue-store.ts";
import type { TableName } from "../../postgres/identifiers.ts";
import type { Database } from "../../postgres/pool.ts";
import { pipelineTakes } from "../../postgres/table-takers.ts";
import { transaction } from "../../postgres/transaction.ts";
import { backlogOf } from "../../sources/postgres/counted-table.ts";
import { parkedShape } from "../../sources/postgres/log/parked-shape.ts";
import { openOutboxSource } from "../../sources/postgres/openoutbox/openoutbox-source.ts";
import { isOpenOutbox } from "../../sources/postgres/openoutbox/openoutbox-table.ts";
import { postgresSource } from "../../sources/postgres/postgres-source.ts";
import { requireSlot, slotName } from "../../sources/postgres/wal/slot.ts";
import { type OperationTarget, operationReadSettings } from "../events/event-source.ts";
import { openLogSource, readerOf } from "../logs/log-source.ts";
import type { KnownPipeline } from "./pipelines.ts";

/** The backlog of a pipeline, or why it could not be counted. */
export type Counted =
  | { readonly backlog: Backlog }
  | { readonly problem: string /** Its table or log cannot be read as it is. */; readonly isBroken: boolean };

/** Events of a table without a route. */
export interface UnroutedEvents extends Unrouted {
  /** `schema.table`. */
  readonly source: string;
}

interface Counts {
  readonly pipelines: ReadonlyMap<string, Counted>;
  /** By table: waiting events that no pipeline reads. */
  readonly unrouted: readonly UnroutedEvents[];
}

/**
 * Counts as a running relay does, once per table and once per reader of a log, sequentially: an operator can wait, the
 * delivery cannot.
 */
export async function countPipelines(target: OperationTarget, known: readonly KnownPipeline[]): Promise<Counts> {
  const pipelines = new Map<string, Counted>();
  const unrouted: UnroutedEvents[] = [];
  for (const reader of known.filter(({ log }) => log !== null)) {
    pipelines.set(
      reader.pipeline,
      await countOrProblem(async () => ({ backlog: await readerBacklog(target, reader) })),
    );
  }
  const queues = Map.groupBy(
    known.filter(({ log }) => log === null),
    ({ source }) => source,
  );
  for (const [source, sharers] of queues) {
    const look = await countOrProblem(async () => ({ found: await tableBacklogs(target, sharers[0]!) }));
    for (const { pipeline } of sharers)
      pipelines.set(pipeline, "found" in look ? countedOf(look.found, pipeline) : look);
    const rest = "found" in look ? look.found.unrouted : null;
    if (rest !== null && rest.events > 0) unrouted.push({ source, ...rest });
  }
  return { pipelines, unrouted };
}

/** The backlog of one reader of a log. */
export async function readerBacklog(target: OperationTarget, known: KnownPipeline): Promise<Backlog> {
  const { lanes, pipeline: name } = known;
  if (known.log === "wal") return await slotBacklog(target.database, known);
  const types = await pipelineTakes(target.database, name);
  const { payloadBytesMax, headersMax } = DEFAULT_LIMITS;
  const spec = { name, types, lanes, attemptsMax: 1, payloadBytesMax, headersMax };
  return await openLogSource(readerOf(target, known)).pipeline(spec).backlog();
}

async function tableBacklogs({ columns, database }: OperationTarget, known: KnownPipeline): Promise<SourceBacklog> {
  const table = { schema: known.schema, table: known.table };
  const isOpen = (await tableKind(database, table)) === "openoutbox";
  const source = isOpen ? openOutboxSource({ database, table }) : postgresSource({ database, table, columns });
  return await source.backlogs!();
}

function countedOf({ pipelines }: SourceBacklog, pipeline: string): Counted {
  const backlog = pipelines.get(pipeline);
  if (backlog !== undefined) return { backlog };
  return {
    problem: "which events it reads is unknown until a relay of this version has served it",
    isBroken: false,
  };
}

async function countOrProblem<T>(count: () => Promise<T>): Promise<T | Extract<Counted, { problem: string }>> {
  try {
    return await count();
  } catch (error) {
    if (!isRelayError(error) || error.code === "DATABASE_UNREACHABLE") throw error;
    return { problem: reasonOf(error), isBroken: error.code !== "DATABASE_BUSY" };
  }
}

/**
 * Only its reader sees the content of the write-ahead log: others can count only the parked events. Throws SLOT_LOST
 * when the log cannot be read any more.
 */
async function slotBacklog(database: Database, { pipeline, schema, table }: KnownPipeline): Promise<Backlog> {
  await requireSlot(database, await slotName(database, pipeline));
  const shape = parkedShape(database, pipeline, { schema, table });
  return { ...(await backlogOf(database, { pipeline, shape, types: null }, "main")), isEstimate: true };
}

/** Which adapter reads a table of events. A missing table counts as an outbox, whose check then reports it. */
async function tableKind(database: Database, { schema, table }: TableName): Promise<"openoutbox" | "outbox"> {
  const settings = operationReadSettings(database, "reading the table");
  const rows = await transaction(database.pool, settings, (session) =>
    session.rows(
      `select a.attname from pg_catalog.pg_attribute a join pg_catalog.pg_class c on c.oid = a.attrelid
       join pg_catalog.pg_namespace n on n.oid = c.relnamespace
       where n.nspname = $1 and c.relname = $2 and a.attnum > 0 and not a.attisdropped`,
      [schema, table],
    ),
  );
  return isOpenOutbox(rows.map((row) => row[0] ?? "")) ? "openoutbox" : "outbox";
}
