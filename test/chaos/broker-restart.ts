import { crc32 } from "node:zlib";
import { judge, type Verdict } from "../e2e/checker.ts";
import { ORDERS } from "../e2e/outbox-tables.ts";
import { startService } from "../e2e/service-process.ts";
import { openStage, type Stage } from "../e2e/stage.ts";
import { countPending, readLedger, readOutbox } from "../e2e/writer.ts";
import { freePort } from "../servers/free-port.ts";
import { startPostgres } from "../servers/postgres.ts";
import { until } from "../servers/until.ts";

/** A message as a consumer of the destination saw it. */
export interface Arrived {
  readonly id: string;
  readonly key: string | null;
  readonly payload: Buffer;
}

export interface RestartOptions {
  /** What OUTBOX_DESTINATION is set to, and nothing else about the destination. */
  readonly destination: string;
  /** kill -9. */
  readonly kill: () => Promise<void>;
  readonly restart: () => Promise<void>;
  /** All that has arrived, in the order in which a consumer sees it. */
  readonly arrived: () => Promise<readonly Arrived[]>;
  /** Where the destination needs other settings than its address. */
  readonly env?: Readonly<Record<string, string>>;
}

const EVENTS = 3_000;
const KEYS = 200;
const TYPE = "order.changed";

/** The type, and with it the topic, of every event of the proof. */
export const RESTART_TYPE = TYPE;

/**
 * 3,000 events of 200 keys on their way through the real service while the destination is killed and started again:
 * what was lost, doubled, out of order or changed.
 */
export async function proveBrokerRestart(options: RestartOptions): Promise<Verdict> {
  await using server = await startPostgres({ version: 18 });
  await using stage = await openStage(server, { database: "restart", tables: [ORDERS] });
  await writeEvents(stage);
  const env = {
    DATABASE_URL: stage.relayUrl,
    OUTBOX_SCHEMAS: "orders",
    OUTBOX_DESTINATION: options.destination,
    PORT: String(await freePort()),
    // So that there is a middle to strike in.
    RATE_LIMIT: "1200",
    ...options.env,
  };
  await using service = startService(["run"], env);
  const pending = () => countPending(stage.pool, [ORDERS]);
  await until("a part is delivered", async () => (await pending()) < EVENTS * 0.8);
  await options.kill();
  const left = await pending();
  if (left === 0) throw new Error("everything was delivered before the kill: nothing was proved");
  await until(
    "the service sees the outage",
    async () => (await pending()) > 0 && (await statusOf(service)) !== "healthy",
  );
  await options.restart();
  await until("everything is delivered", async () => (await pending()) === 0);
  service.kill("SIGTERM");
  await service.ended;
  const arrivals = (await options.arrived()).map((it) => ({ ...it, topic: TYPE, headers: {}, atMs: 0 }));
  return judge(await readLedger(stage.pool), arrivals, await readOutbox(stage.pool, [ORDERS]));
}

async function statusOf(service: ReturnType<typeof startService>): Promise<unknown> {
  return (await service.get("/health")).json().status;
}

/** The time of writing tells the order; the ledger knows it independently. */
async function writeEvents({ sql }: Stage): Promise<void> {
  await sql(
    `insert into orders.outbox (id, aggregate_id, event_type, payload, created_at)
     select gen_random_uuid(), 'key-' || n % ${KEYS}, $1, jsonb_build_object('key', n % ${KEYS}, 'sequence', n / ${KEYS}),
       timestamptz '2026-01-01' + n * interval '1 ms'
     from generate_series(${KEYS}, ${EVENTS + KEYS - 1}) n`,
    [TYPE],
  );
  const rows = await sql<{ id: string; aggregate_id: string; payload: string; sequence: string }>(
    "select id, aggregate_id, payload::text, payload ->> 'sequence' as sequence from orders.outbox",
  );
  const ledger = rows.map(({ id, aggregate_id, payload, sequence }) => ({
    id,
    key: aggregate_id,
    sequence: Number(sequence),
    crc: crc32(payload),
  }));
  await sql(
    `insert into e2e.ledger (source, id, key, sequence, crc)
     select 'orders.outbox', id, key, sequence, crc
     from json_to_recordset($1) as it(id uuid, key text, sequence int, crc bigint)`,
    [JSON.stringify(ledger)],
  );
}
