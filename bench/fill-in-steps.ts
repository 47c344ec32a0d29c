import type { PostgresServer } from "../test/servers/postgres.ts";
import type { FillOptions } from "./outbox-tables.ts";

const TRANSACTION_ROWS = 1_000;
const CALL_ROWS = 50_000;

/** The columns of `public.outbox` that take type, key, payload and correlation id, in this order. */
export type FilledColumns = readonly [type: string, key: string, payload: string, correlationId: string];

/** Writes the rows as a service does, in many transactions one after the other; every row with a time of its own. */
export async function fillInSteps(
  postgres: PostgresServer,
  columns: FilledColumns,
  { keys, payloadBytes, rows }: FillOptions,
): Promise<void> {
  await postgres.query(`create or replace procedure public.bench_fill(first int, last int, keys int, bytes int)
    language plpgsql as $$
    begin
      while first < last loop
        insert into public.outbox (${columns.join(", ")})
          select 'order.created', md5((i % keys)::text)::uuid::text,
            '{"n":' || i || ',"x":"' || repeat('x', bytes) || '"}', md5(i::text)::uuid::text
          from generate_series(first, least(last, first + ${TRANSACTION_ROWS}) - 1) i order by i;
        commit;
        first := first + ${TRANSACTION_ROWS};
      end loop;
    end $$`);
  const filler = Math.max(1, payloadBytes - 24);
  for (let from = 0; from < rows; from += CALL_ROWS) {
    const until = Math.min(rows, from + CALL_ROWS);
    await postgres.query(`call public.bench_fill(${from}, ${until}, ${keys}, ${filler})`);
  }
  await postgres.query("vacuum (analyze) public.outbox");
  await postgres.query("checkpoint");
}
