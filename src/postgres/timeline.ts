import { isRelayError } from "../core/errors.ts";
import type { Database } from "./pool.ts";
import { glance } from "./transaction.ts";

/**
 * The line of the server's history, from the name of the file that it writes its log to: a standby that is promoted
 * begins another one. So grants from before a failover are told apart, which may have forgotten what they were for.
 */
const TIMELINE = "substr(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 1, 8)";

/** Not there, not supported, not allowed: some hosted servers hide their log, and how they fail over. */
const NOT_TOLD = new Set(["42883", "0A000", "42501"]);

const known = new WeakMap<Database, string | null>();

/** The expression for it; null where the server does not tell. */
export async function timelineSql(database: Database): Promise<string | null> {
  const before = known.get(database);
  if (before !== undefined) return before;
  const expression = (await tellsTimeline(database)) ? TIMELINE : null;
  known.set(database, expression);
  return expression;
}

/** True for a grant that was given in the server's present line of history. A fragment. */
export function timelineCondition(timeline: string | undefined): string {
  return timeline === undefined ? "true" : `${TIMELINE} = '${timeline}'`;
}

async function tellsTimeline(database: Database): Promise<boolean> {
  try {
    const context = database.errorContext("asking for the server's timeline");
    await glance(database.pool, context, database.timeouts.readMs, `select ${TIMELINE}`);
    return true;
  } catch (error) {
    const cause = isRelayError(error) ? (error.cause as { readonly code?: string } | undefined) : undefined;
    if (NOT_TOLD.has(cause?.code ?? "")) return false;
    throw error;
  }
}
