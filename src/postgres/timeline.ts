import { isRelayError } from "../core/errors.ts";
import type { Database } from "./pool.ts";
import { glance } from "./transaction.ts";

/**
 * The server's current timeline, from the name of its current log file: a promoted standby begins another one. It
 * distinguishes grants from before a failover, whose progress the new primary may have lost.
 */
const TIMELINE = "substr(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 1, 8)";

/** Missing, unsupported or forbidden: some hosted servers hide their log and their failovers. */
const UNAVAILABLE_CODES = new Set(["42883", "0A000", "42501"]);

const known = new WeakMap<Database, string | null>();

/** The SQL expression for the timeline; null where the server hides it. */
export async function timelineSql(database: Database): Promise<string | null> {
  const before = known.get(database);
  if (before !== undefined) return before;
  const expression = (await tellsTimeline(database)) ? TIMELINE : null;
  known.set(database, expression);
  return expression;
}

/** True for a grant of the server's current timeline. A fragment. */
export function timelineCondition(timeline: string | undefined): string {
  return timeline === undefined ? "true" : `${TIMELINE} = '${timeline}'`;
}

async function tellsTimeline(database: Database): Promise<boolean> {
  try {
    const context = database.errorContext("reading the server's timeline");
    await glance(database.pool, context, database.timeouts.readMs, `select ${TIMELINE}`);
    return true;
  } catch (error) {
    const cause = isRelayError(error) ? (error.cause as { readonly code?: string } | undefined) : undefined;
    if (UNAVAILABLE_CODES.has(cause?.code ?? "")) return false;
    throw error;
  }
}
