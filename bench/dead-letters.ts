import { managedTableSql } from "../src/postgres/managed/managed-table.sql.ts";
import type { PostgresServer } from "../test/servers/postgres.ts";

/** A managed outbox of its own, all events of which are dead by one error and park their keys; nobody serves it. */
export async function fillDeadLetters(postgres: PostgresServer, count: number): Promise<void> {
  const table = { schema: "public", table: "letters" };
  await postgres.query("drop table if exists public.letters cascade");
  await postgres.query(managedTableSql({ table, payload: "text", partition: "1 day", wakeUp: false }));
  await postgres.query(`
    insert into public.letters (event_type, event_key, payload, correlation_id)
      select 'order.refunded', 'dead-' || n, '{"n":' || n || ',"x":"' || repeat('x', 170) || '"}', md5(n::text)::uuid::text
      from generate_series(1, ${count}) n;
    insert into outbox_relay.pipelines (name, source_schema, source_table, lanes)
      values ('public.letters->stdout', 'public', 'letters', 1);
    insert into outbox_relay.lanes (pipeline, lane, position) values ('public.letters->stdout', 0,
      jsonb_build_object('from', pg_current_snapshot()::text, 'to', null, 'after', '0', 'ahead', ''));
    insert into outbox_relay.failed_events (pipeline, original_event_id, source_schema, source_table, event_type, event_key, payload,
        correlation_id, event_created_at, failure_reason, failure_count, last_failed_at)
      select 'public.letters->stdout', event_id::text, 'public', 'letters', event_type, event_key, convert_to(payload, 'UTF8'),
        correlation_id, created_at, 'topic "refunds" refused ' || 200 + id % 50 || ' bytes of event ' || event_id, 10,
        now() - id * interval '100 ms' from public.letters;
    insert into outbox_relay.parked (pipeline, event_id, place, event_type, event_key, payload, correlation_id, created_at)
      select 'public.letters->stdout', event_id::text, id, event_type, event_key, convert_to(payload, 'UTF8'), correlation_id, created_at
      from public.letters;
    insert into outbox_relay.holds (pipeline, lane, event_id, event_key, state, parks, attempts, reason, first_failed_at, last_failed_at)
      select pipeline, 0, original_event_id, event_key, 'dead', true, failure_count, failure_reason, last_failed_at, last_failed_at
      from outbox_relay.failed_events`);
  for (const name of ["public.letters", "outbox_relay.failed_events", "outbox_relay.holds", "outbox_relay.parked"]) {
    await postgres.query(`vacuum (analyze) ${name}`);
  }
}
