import { type RedisOutbox, redisOutbox } from "../../../src/redis-outbox.ts";
import { openStage, type Stage } from "../../e2e/stage.ts";
import { openOutboxTableSql } from "../../servers/openoutbox-table.ts";
import { type PostgresServer, startPostgres } from "../../servers/postgres.ts";
import { type RedisServer, startRedis } from "../../servers/redis.ts";

/** An event by what its payload says: the key, and how many of it came before. */
export interface ProvedEvent {
  readonly key: string;
  readonly number: number;
}

/** A source that relays read and die over. */
export interface ProvedSource extends AsyncDisposable {
  /** What the relay is told of it. */
  readonly variables: Readonly<Record<string, string>>;
  /** In one transaction. */
  write(events: readonly ProvedEvent[]): Promise<void>;
  /** How many rows are claimed now, where that can be seen. */
  claimed(): Promise<number>;
  /** What the source itself still calls undelivered, and what it gave up. */
  left(): Promise<{ readonly waiting: number; readonly dead: number }>;
}

export const SOURCE_KINDS = ["openoutbox", "worker", "intent", "event-table", "redis"] as const;
export type SourceKind = (typeof SOURCE_KINDS)[number];

interface TableKind {
  readonly create: string;
  readonly variables: Readonly<Record<string, string>>;
  /**
   * Selects from `e`, which has key, type and payload as JSON, in order. Each event has a time of its own: where times are
   * equal, only the place in the table tells the order, and a server that has room in earlier pages mixes it up.
   */
  readonly insert: string;
  readonly claimed?: string;
  readonly waiting: string;
  readonly dead: string;
}

const LETTERS = "select count(*)::int from outbox_relay.failed_events where resolved_at is null";

const TABLES: Readonly<Record<Exclude<SourceKind, "redis">, TableKind>> = {
  openoutbox: {
    create: openOutboxTableSql("public.openoutbox_events"),
    // As the relay that the table comes from is told; three crashes must not bury anything.
    variables: { OUTBOX_TABLE: "public.openoutbox_events", LEASE_TIMEOUT: "3m", RETRY_MAX_ATTEMPTS: "3" },
    insert: `insert into public.openoutbox_events (event_id, event_type, partition_key, payload, created_at)
      select gen_random_uuid(), e.type, e.key, convert_to(e.payload::text, 'UTF8'), clock_timestamp()`,
    claimed: "select count(*)::int from public.openoutbox_events where status = 'DELIVERING'",
    waiting: "select count(*)::int from public.openoutbox_events where status in ('PENDING', 'DELIVERING')",
    dead: "select count(*)::int from public.openoutbox_events where status = 'DEAD'",
  },
  worker: {
    create: `create table public.event_outbox (event_id uuid primary key, event_name text not null,
      aggregate_id text not null, payload jsonb not null, correlation_id text,
      occurred_at timestamptz not null default clock_timestamp(), status text not null default 'Pending',
      attempts int not null default 0, next_attempt_at timestamptz, last_error text)`,
    variables: { OUTBOX_TABLE: "public.event_outbox" },
    insert: `insert into public.event_outbox (event_id, event_name, aggregate_id, payload)
      select gen_random_uuid(), e.type, e.key, e.payload`,
    waiting: "select count(*)::int from public.event_outbox where status = 'Pending'",
    dead: LETTERS,
  },
  intent: {
    create: `create table public.intents (id uuid primary key default gen_random_uuid(), aggregate_id text,
      intent jsonb not null, created_at timestamptz not null default clock_timestamp(), delivered_at timestamptz,
      attempt_count int not null default 0, last_error text)`,
    variables: { OUTBOX_TABLE: "public.intents" },
    insert: `insert into public.intents (aggregate_id, intent)
      select e.key, e.payload || jsonb_build_object('type', e.type)`,
    waiting: "select count(*)::int from public.intents where delivered_at is null",
    dead: LETTERS,
  },
  "event-table": {
    create: `create table public.events (id bigint generated always as identity primary key, event_type text not null,
      aggregate_id text, payload jsonb, created_at timestamptz default now(), tx xid8 not null default pg_current_xact_id());
      create index on public.events (tx, id)`,
    variables: { OUTBOX_EVENT_TABLES: "public.events", OUTBOX_COLUMNS: "id=id,position=id,xid=tx" },
    insert: "insert into public.events (event_type, aggregate_id, payload) select e.type, e.key, e.payload",
    waiting: "select count(*)::int from outbox_relay.parked",
    dead: LETTERS,
  },
};

export async function openSource(kind: SourceKind): Promise<ProvedSource> {
  return kind === "redis" ? openRedis(await startRedis()) : await openTable(await startPostgres({ version: 18 }), kind);
}

async function openTable(server: PostgresServer, kind: keyof typeof TABLES): Promise<ProvedSource> {
  const { create, variables, insert, claimed, waiting, dead } = TABLES[kind];
  const stage: Stage = await openStage(server, { database: "shop", tables: [] });
  await stage.sql(create);
  const count = async (sql: string) => (await stage.sql<{ count: number }>(sql))[0]!.count;
  return {
    variables: { DATABASE_URL: stage.url, ...variables },
    async write(events) {
      const rows = events.map((event) => ({ ...event, payload: event }));
      await stage.sql(
        `${insert} from rows from (jsonb_to_recordset($1) as (key text, payload jsonb)) with ordinality as e (key, payload, place)
         cross join lateral (select 'thing.done' as type) t order by place`.replaceAll("e.type", "t.type"),
        [JSON.stringify(rows)],
      );
    },
    claimed: async () => (claimed === undefined ? 0 : await count(claimed)),
    left: async () => ({ waiting: await count(waiting), dead: await count(dead) }),
    async [Symbol.asyncDispose]() {
      await stage[Symbol.asyncDispose]();
      await server[Symbol.asyncDispose]();
    },
  };
}

function openRedis(server: RedisServer): ProvedSource {
  const outbox: RedisOutbox = redisOutbox({ url: server.url, name: "shop" });
  return {
    variables: { OUTBOX_STORE: `${server.url}?name=shop` },
    async write(events) {
      await outbox.append(
        events.map((event) => ({
          id: `${event.key}-${event.number}`,
          type: "thing.done",
          key: event.key,
          payload: JSON.stringify(event),
        })),
      );
    },
    claimed: async () => 0,
    left: async () => ({ waiting: 0, dead: (await outbox.deadLetters()).length }),
    async [Symbol.asyncDispose]() {
      await outbox.close();
      await server[Symbol.asyncDispose]();
    },
  };
}
