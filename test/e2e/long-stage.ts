import type { PostgresServer } from "../servers/postgres.ts";
import { until } from "../servers/until.ts";
import { type ConsoleStage, consoleStage } from "./console-stage.ts";

const EVENTS = 300_000;

/** Every second order is named by its key; the others by a field of the payload alone. */
const FILL = `create index on shop.outbox (position);
insert into shop.outbox (id, aggregate_id, event_type, payload, headers, correlation_id, created_at, published)
select 'event-' || n, case n % 2 when 1 then 'order-' || n else 'customer-' || n % 5000 end, 'order.' || (array['placed', 'paid', 'sent'])[n % 3 + 1],
  '{"order": ' || n || ', "amount": ' || n % 977 || '}', jsonb_build_object('tenant', 'tenant-' || n % 50), 'trace-' || n / 3,
  now() - interval '1 s' * (${EVENTS} - n), true
from generate_series(1, ${EVENTS}) n;
analyze shop.outbox`;

/** A table with a long past, and these orders among the last that the receiver refuses. */
export async function longStage(server: PostgresServer, refused: readonly number[]): Promise<ConsoleStage> {
  const stage = await consoleStage(server);
  stage.judge.refusal = "no such customer";
  await stage.service.becomes("healthy");
  await stage.sql(FILL);
  await stage.sql("update shop.outbox set published = false where id = any($1)", [refused.map((n) => `event-${n}`)]);
  await until("they are refused", async () => (await stage.dead()) === refused.length);
  return stage;
}
