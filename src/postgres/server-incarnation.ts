/**
 * The server's incarnation: it changes when the server recovers from a crash, because crash recovery resets all
 * statistics. After a crash the server reuses the ids of transactions that aborted just before it or never wrote
 * anything, and a snapshot from before the crash counts the new transactions as seen. A checkpoint that was committed
 * in the same database is safe, because its commit uses up all lower ids; state that exists only in memory is not.
 *
 * Resetting one kind of statistics changes nothing. After a reset of all kinds the lanes continue from their
 * checkpoints, as after a crash. A subselect, so that PostgreSQL evaluates it once per statement and not once per row.
 */
export const SERVER_INCARNATION = `(select coalesce(extract(epoch from least(pg_catalog.pg_stat_get_bgwriter_stat_reset_time(),
  (pg_catalog.pg_stat_get_archiver()).stats_reset))::text, ''))`;
