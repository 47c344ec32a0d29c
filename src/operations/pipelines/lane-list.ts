import type { Database } from "../../postgres/pool.ts";
import { statement } from "../../postgres/transaction.ts";
import { operationReadSettings } from "../events/event-source.ts";

/** A lane with its owner and progress. */
export interface ListedLane {
  readonly pipeline: string;
  readonly lane: number;
  /** Null for a free lane. */
  readonly owner: { readonly id: string; readonly name: string | null; readonly isAlive: boolean } | null;
  /** May exceed the exact range of JSON numbers, hence a text. */
  readonly epoch: string;
  readonly settledBatch: string;
  readonly crashes: number;
  readonly published: string;
  readonly settledAt: string | null;
}

/** All lanes. */
export async function listLanes(database: Database): Promise<readonly ListedLane[]> {
  const { instances, lanes } = database.tables;
  const rows = await statement(
    database.pool,
    operationReadSettings(database, "listing the lanes"),
    `select l.pipeline, l.lane, l.owner, i.name, i.alive_until > clock_timestamp(), l.epoch, l.settled_batch, l.crashes,
       l.published_total, to_char(l.settled_at, 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
     from ${lanes} l left join ${instances} i on i.id = l.owner order by l.pipeline, l.lane`,
  );
  return rows.map((row) => ({
    pipeline: row[0] ?? "",
    lane: Number(row[1]),
    owner: row[2] == null ? null : { id: row[2], name: row[3] ?? null, isAlive: row[4] === "t" },
    epoch: row[5] ?? "0",
    settledBatch: row[6] ?? "0",
    crashes: Number(row[7]),
    published: row[8] ?? "0",
    settledAt: row[9] ?? null,
  }));
}
