import type { Database } from "../../postgres/pool.ts";
import type { Session } from "../../postgres/session.ts";
import { destinationSql } from "./pipelines.ts";

const COLUMNS = {
  pause: { wish: "paused_at", others: "paused_by = null, pause_reason = null" },
  limit: { wish: "limit_per_second", others: "limited_by = null, limit_reason = null" },
} as const;

/**
 * Ends the pause or limit of a destination once none of its pipelines has it any more: otherwise a pipeline that is
 * added later would be paused by a setting that everyone has forgotten.
 */
export async function endOverrides(
  session: Session,
  { tables: { destinations, pipelines } }: Database,
  wish: keyof typeof COLUMNS,
): Promise<void> {
  const { others, wish: column } = COLUMNS[wish];
  await session.rows(
    `update ${destinations} d set ${column} = null, ${others}, updated_at = clock_timestamp()
     where d.${column} is not null and not exists (
       select from ${pipelines} p where p.${column} is not null and ${destinationSql("p.name")} = d.name)`,
  );
}
