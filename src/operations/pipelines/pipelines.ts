import { displayTable } from "../../postgres/identifiers.ts";
import { isLogPositionSql } from "../../postgres/log-place.ts";
import { isManagedSql } from "../../postgres/managed/managed-names.ts";
import { requireSchema } from "../../postgres/migrations/migrate.ts";
import type { Database } from "../../postgres/pool.ts";
import { statement } from "../../postgres/transaction.ts";
import type { LogPreset } from "../../sources/postgres/log/log-preset.ts";
import { operationReadSettings } from "../events/event-source.ts";

/** A pipeline as the relay's schema knows it. */
export interface KnownPipeline {
  readonly pipeline: string;
  /** `schema.table`. */
  readonly source: string;
  readonly schema: string;
  readonly table: string;
  readonly destination: string;
  /** Exactly once if it owns slots in a ledger of the destination. */
  readonly delivery: "exactly-once" | "at-least-once";
  readonly lanes: number;
  readonly pause: KnownPause | null;
  /** Rate limit per instance that an operator has set. */
  readonly limit: KnownLimit | null;
  /** How it reads its log; null for a queue. */
  readonly log: LogPreset | null;
  /** Its subscriber name, where a log has several readers. */
  readonly subscriber: string | null;
}

/** The pause of a pipeline. */
export interface KnownPause {
  readonly at: string;
  readonly by: string;
  readonly reason: string | null;
  /** The lane count that it is about to get; null for a plain pause. */
  readonly lanesWanted: number | null;
}

/** The rate limit of a pipeline. */
export interface KnownLimit {
  readonly perSecond: number;
  readonly by: string | null;
  readonly reason: string | null;
}

/** A row with ledger slots and without lanes is a forgotten pipeline: it only keeps its slots from being reused. */
export async function knownPipelines(database: Database): Promise<readonly KnownPipeline[]> {
  await requireSchema(database);
  const rows = await statement(
    database.pool,
    operationReadSettings(database, "listing the pipelines"),
    `select name, source_schema, source_table, lanes, first_slot is not null,
       to_char(paused_at, 'YYYY-MM-DD"T"HH24:MI:SS"Z"'), paused_by, pause_reason, lanes_wanted, ${logSql(database)},
       limit_per_second, limited_by, limit_reason
     from ${database.tables.pipelines} p
     where first_slot is null or exists (select from ${database.tables.lanes} l where l.pipeline = p.name)
     order by name`,
  );
  return rows.map((row) => {
    const [pipeline, schema, table] = [row[0] ?? "", row[1] ?? "", row[2] ?? ""];
    const source = displayTable({ schema, table });
    const lanesWanted = row[8] == null ? null : Number(row[8]);
    return {
      pipeline,
      source,
      schema,
      table,
      destination: pipeline.slice(pipeline.lastIndexOf("->") + 2),
      delivery: row[4] === "t" ? "exactly-once" : "at-least-once",
      lanes: Number(row[3]),
      pause: row[5] == null ? null : { at: row[5], by: row[6] ?? "", reason: row[7] ?? null, lanesWanted },
      limit: row[10] == null ? null : { perSecond: Number(row[10]), by: row[11] ?? null, reason: row[12] ?? null },
      log: (row[9] ?? null) as LogPreset | null,
      subscriber: subscriberIn(pipeline, source),
    };
  });
}

/** The SQL counterpart of `destinationOf`. */
export function destinationSql(pipeline: string): string {
  return String.raw`regexp_replace(regexp_replace(${pipeline}, '^.*->', ''), '\[.*\]$', '')`;
}

/** Derived from the form of the positions, and for a table from its columns: the relay's schema stores no settings. */
function logSql({ tables }: Database): string {
  const lanes = `select from ${tables.lanes} l where l.pipeline = p.name and`;
  const table = "to_regclass(format('%I.%I', p.source_schema, p.source_table))";
  return `case when exists (${lanes} l.position ? 'lsn') then 'wal' when ${isManagedSql(table)} then 'managed'
    when exists (${lanes} ${isLogPositionSql("l.position")}) then 'tail' end`;
}

/** `audit` of `shop.log@audit->kafka`. */
function subscriberIn(pipeline: string, source: string): string | null {
  if (!pipeline.startsWith(`${source}@`)) return null;
  return pipeline.slice(source.length + 1, pipeline.lastIndexOf("->"));
}

/** Selects pipelines by name, source, subscriber of a source, or schema. */
export function pipelinesMeant(known: readonly KnownPipeline[], wanted: string): readonly KnownPipeline[] {
  const byName = known.filter(({ pipeline }) => pipeline === wanted);
  if (byName.length > 0) return byName;
  const bySubscriber = known.filter(({ source, subscriber }) => `${source}@${subscriber}` === wanted);
  if (bySubscriber.length > 0) return bySubscriber;
  const bySource = known.filter(({ source }) => source === wanted);
  return bySource.length > 0 ? bySource : known.filter(({ schema }) => schema === wanted);
}
