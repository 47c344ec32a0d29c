import { displayTable } from "../../postgres/identifiers.ts";
import { transaction } from "../../postgres/transaction.ts";
import { operationReadSettings } from "../events/event-source.ts";
import type { DoctorSubject, Finding, ShapedTable } from "./finding.ts";

const LARGE_ROWS = 100_000;
/** Share of delivered rows in a table that is mostly history. */
const DELIVERED_SHARE = 0.8;
const DEAD_ROWS = 10_000;

/** Tables that only grow, or that autovacuum does not clean. Uses estimates of the server: counting would be slow. */
export async function checkUpkeep(
  { database, retentionMs }: DoctorSubject,
  { table, shape }: ShapedTable,
): Promise<readonly Finding[]> {
  const name = displayTable(table);
  const settings = operationReadSettings(database, "reading the table's upkeep", name);
  return await transaction(database.pool, settings, async (session) => {
    const [row] = await session.rows(
      `select greatest(c.reltuples, 0)::bigint, pg_size_pretty(pg_total_relation_size(c.oid)),
         coalesce(c.reloptions::text ~ 'autovacuum_enabled=(false|off|0|no)', false),
         coalesce(s.n_dead_tup, 0), coalesce(s.n_live_tup, 0)
       from pg_catalog.pg_class c left join pg_catalog.pg_stat_all_tables s on s.relid = c.oid
       where c.oid = $1::regclass`,
      [shape.quotedName],
    );
    const [rows, deadRows, liveRows] = [Number(row?.[0]), Number(row?.[3]), Number(row?.[4])];
    const [plan] = await session.rows(`explain (format json) select from ${shape.quotedName} t where ${shape.main}`);
    const waiting = planRows(plan?.[0] ?? "[]");
    const findings: Finding[] = [];
    if (retentionMs === null && rows >= LARGE_ROWS && rows - waiting >= DELIVERED_SHARE * rows) {
      const what = `${name} holds about ${rows} events (${row?.[1]}), nearly all delivered, and RETENTION is not set`;
      findings.push({
        severity: "warning",
        check: "retention",
        what,
        fix: `RETENTION=7d\ngrant delete on ${shape.quotedName} to "${database.role}";`,
      });
    }
    if (row?.[2] === "t") {
      const fix = `alter table ${shape.quotedName} reset (autovacuum_enabled);`;
      findings.push({ severity: "warning", check: "vacuum", what: `Autovacuum is off for ${name}`, fix });
    }
    if (deadRows >= DEAD_ROWS && deadRows > liveRows) {
      const what = `${name} has ${deadRows} dead row versions and ${liveRows} live ones`;
      const fix = `vacuum (analyze) ${shape.quotedName};\nalter table ${shape.quotedName} set (autovacuum_vacuum_scale_factor = 0.02);`;
      findings.push({ severity: "warning", check: "vacuum", what, fix });
    }
    return findings;
  });
}

function planRows(text: string): number {
  const [explained] = JSON.parse(text) as [{ readonly Plan?: { readonly "Plan Rows"?: number } }?];
  return explained?.Plan?.["Plan Rows"] ?? 0;
}
