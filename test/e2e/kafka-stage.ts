import { randomUUID } from "node:crypto";
import { freePort } from "../servers/free-port.ts";
import { until } from "../servers/until.ts";
import type { OutboxTable } from "./outbox-tables.ts";
import { type Ended, runCommand, type ServiceProcess, startService } from "./service-process.ts";
import { openStage, type Place, type Stage } from "./stage.ts";

const TABLE: OutboxTable = {
  schema: "orders",
  table: "outbox",
  order: "sequence",
  payload: "json",
  flags: ["published"],
};

interface NewEvent {
  readonly type: string;
  readonly key?: string | null;
  readonly payload?: string;
}

type Env = Readonly<Record<string, string>>;

/** A database of its own with the table `orders.outbox`, and the service for it, set by environment alone. */
export interface KafkaStage extends Stage {
  readonly env: Env;
  /** In this order, in one transaction. Returns the ids. */
  insert(events: readonly NewEvent[]): Promise<string[]>;
  /** `outbox-relay run` on a free port. */
  run(more?: Env): Promise<ServiceProcess>;
  once(more?: Env): Promise<Ended>;
  pendingCount(): Promise<number>;
  /** Waits for something that the service does; in vain, the error shows what the service said last. */
  waitFor(what: string, condition: () => boolean | Promise<boolean>): Promise<void>;
  drained(): Promise<void>;
}

export async function openKafkaStage(place: Place, database: string, env: Env): Promise<KafkaStage> {
  const stage = await openStage(place, { database, tables: [TABLE] });
  const full = { DATABASE_URL: stage.relayUrl, OUTBOX_SCHEMAS: TABLE.schema, ...env };
  const pendingCount = () => countPending(stage);
  let latest: ServiceProcess | null = null;
  const waitFor = async (what: string, condition: () => boolean | Promise<boolean>) => {
    await until(what, condition).catch((error: Error) => {
      throw new Error(`${error.message}\n${latest?.stderr().slice(-4_000)}`, { cause: error });
    });
  };
  return {
    ...stage,
    env: full,
    insert: (events) => insertEvents(stage, events),
    run: async (more = {}) => {
      latest = startService(["run"], { ...full, PORT: String(await freePort()), ...more });
      return latest;
    },
    once: (more = {}) => runCommand(["run", "--once"], { ...full, ...more }),
    pendingCount,
    waitFor,
    drained: () => waitFor("all rows are marked", async () => (await pendingCount()) === 0),
  };
}

/** So many events of one type, the keys in turn, which no other type has; the payload tells the number of the event among those of its key. */
export function eventsOf(type: string, count: number, keys = count): NewEvent[] {
  return Array.from({ length: count }, (_, n) => ({
    type,
    key: `${type} ${n % keys}`,
    payload: JSON.stringify({ number: Math.floor(n / keys) }),
  }));
}

async function insertEvents({ sql }: Stage, events: readonly NewEvent[]): Promise<string[]> {
  const ids = events.map(() => randomUUID());
  await sql(
    `insert into orders.outbox (id, aggregate_id, event_type, payload)
     select id, key, type, payload::json
     from unnest($1::uuid[], $2::text[], $3::text[], $4::text[]) with ordinality as e (id, key, type, payload, n) order by n`,
    [ids, events.map(({ key }) => key ?? null), events.map(({ type }) => type), events.map((it) => it.payload ?? "{}")],
  );
  return ids;
}

async function countPending({ sql }: Stage): Promise<number> {
  const [row] = await sql<{ count: string }>("select count(*) from orders.outbox where not published");
  return Number(row?.count);
}
