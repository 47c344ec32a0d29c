import type pg from "pg";
import type { RelayTables } from "../../src/postgres/relay-tables.ts";
import type { StoreSubject } from "../../src/testing/contracts/store-subject.ts";

type RelayRows = Pick<StoreSubject, "deadLetters" | "pause" | "expireInstance" | "expireImpossiblyFar">;

/** What the contract of stores asks of the relay's own tables in Postgres, whatever the source's table is. */
export function relayRows(admin: pg.Pool, { failedEvents, instances, pipelines }: RelayTables): RelayRows {
  const expire = async (id: string, by: string) =>
    void (await admin.query(`update ${instances} set alive_until = clock_timestamp() + $2::interval where id = $1`, [
      id,
      by,
    ]));
  return {
    deadLetters: () => readDeadLetters(admin, failedEvents),
    pause: async (pipeline, pause) =>
      void (await admin.query(
        `update ${pipelines} set paused_at = case when $2 then now() end, paused_by = $3, pause_reason = $4,
           lanes_wanted = case when $5 then lanes end where name = $1`,
        [pipeline, pause !== null, pause?.by, pause?.reason, pause?.handsOver ?? false],
      )),
    expireInstance: (id) => expire(id, "-1 second"),
    expireImpossiblyFar: (id) => expire(id, "10 years"),
  };
}

async function readDeadLetters(admin: pg.Pool, failedEvents: string) {
  const { rows } = await admin.query<{
    original_event_id: string;
    payload: Buffer;
    failure_reason: string;
    failure_count: number;
    first_failed_at: Date;
    last_failed_at: Date;
    errors: { reason: string }[];
  }>(`select * from ${failedEvents}`);
  return rows.map((row) => ({
    id: row.original_event_id,
    payload: row.payload,
    reason: row.failure_reason,
    failures: row.failure_count,
    firstFailedAt: row.first_failed_at,
    lastFailedAt: row.last_failed_at,
    errors: row.errors.map(({ reason }) => reason),
  }));
}
