import { RelayError } from "../../../core/errors.ts";

/**
 * Changes whenever the server recovers from a crash, and only then: its statistics begin anew. Behind a crash the
 * numbers of transactions that were aborted just before it, or never wrote anything, are given out again, to new
 * transactions, which a snapshot from before the crash takes for seen. A checkpoint that was committed in the same
 * database is safe, because with it all lower numbers are used up for good; what stands in memory alone is not.
 */
export const LIFE = "coalesce(extract(epoch from pg_catalog.pg_stat_get_bgwriter_stat_reset_time())::text, '')";

export function lifeOver(table: string): RelayError {
  const what = `The server of ${table} recovered from a crash: what was read before and not written down is void,`;
  return new RelayError("DATABASE_UNREACHABLE", `${what} and its lanes go on from their checkpoints.`);
}
