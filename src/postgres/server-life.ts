/**
 * Changes whenever the server recovers from a crash: all of its statistics begin anew. Behind a crash the numbers of
 * transactions that were aborted just before it, or never wrote anything, are given out again, to new transactions,
 * which a snapshot from before the crash takes for seen. A checkpoint that was committed in the same database is safe,
 * because with it all lower numbers are used up for good; what stands in memory alone is not.
 *
 * A person who resets one kind of statistics changes nothing; whoever resets them all makes the lanes go on from their
 * checkpoints once. Asked once in a statement, not for each row.
 */
export const LIFE = `(select coalesce(extract(epoch from least(pg_catalog.pg_stat_get_bgwriter_stat_reset_time(),
  (pg_catalog.pg_stat_get_archiver()).stats_reset))::text, ''))`;
