import { displayTable } from "../postgres/identifiers.ts";
import { requireSchema } from "../postgres/migrations/migrate.ts";
import type { Database } from "../postgres/pool.ts";
import { statement } from "../postgres/transaction.ts";
import { operationReadSettings } from "./event-source.ts";

/** A pipeline as the relay's schema knows it. */
export interface KnownPipeline {
  readonly pipeline: string;
  /** `schema.table`. */
  readonly source: string;
  readonly schema: string;
  readonly table: string;
  readonly destination: string;
  /** By what it has at the destination: slots in a ledger, or none. */
  readonly delivery: "exactly-once" | "at-least-once";
  readonly lanes: number;
  readonly pause: KnownPause | null;
}

export interface KnownPause {
  readonly at: string;
  readonly by: string;
  readonly reason: string | null;
  /** The number of lanes that it is about to get; null when only delivery is stopped. */
  readonly lanesWanted: number | null;
}

export async function knownPipelines(database: Database): Promise<readonly KnownPipeline[]> {
  await requireSchema(database);
  const rows = await statement(
    database.pool,
    operationReadSettings(database, "listing the pipelines"),
    `select name, source_schema, source_table, lanes, first_slot is not null,
       to_char(paused_at, 'YYYY-MM-DD"T"HH24:MI:SS"Z"'), paused_by, pause_reason, lanes_wanted
     from ${database.tables.pipelines} order by name`,
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
    };
  });
}

/** Those with this name, of this source or of this schema. */
export function pipelinesMeant(known: readonly KnownPipeline[], wanted: string): readonly KnownPipeline[] {
  const byName = known.filter(({ pipeline }) => pipeline === wanted);
  if (byName.length > 0) return byName;
  const bySource = known.filter(({ source }) => source === wanted);
  return bySource.length > 0 ? bySource : known.filter(({ schema }) => schema === wanted);
}
