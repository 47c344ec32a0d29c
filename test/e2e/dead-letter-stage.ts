import { freePort } from "../servers/free-port.ts";
import type { PostgresServer } from "../servers/postgres.ts";
import { until } from "../servers/until.ts";
import { BILLING, ORDERS } from "./outbox-tables.ts";
import { type Ended, runCommand, type ServiceProcess, startService } from "./service-process.ts";
import { openStage, type Stage } from "./stage.ts";

const OPEN_OUTBOX = "public.openoutbox_events";
const WORKER = "mail.outbox";

/** Where events without a tenant cannot be sent: they are dead letters until somebody mends their row. */
export interface DeadLetterStage extends Stage {
  readonly env: Readonly<Record<string, string>>;
  run(env?: Readonly<Record<string, string>>): Promise<ServiceProcess>;
  command(...args: readonly string[]): Promise<Ended>;
  /** Writes `key number` events in this order, a `!` behind the number for one without a tenant; their ids by name. */
  write(table: string, names: string): Promise<Record<string, string>>;
  /** Gives the event its tenant. */
  mend(table: string, id: string): Promise<void>;
}

let stages = 0;

export async function deadLetterStage(server: PostgresServer): Promise<DeadLetterStage> {
  stages += 1;
  const stage = await openStage(server, { database: `letters_${process.pid}_${stages}`, tables: [ORDERS, BILLING] });
  await stage.sql(`create table ${OPEN_OUTBOX} (event_id uuid primary key default gen_random_uuid(), event_type text not null,
      partition_key text, payload bytea not null, headers jsonb not null default '{}', status text not null default 'PENDING',
      attempts int not null default 0, last_error text, available_at timestamptz not null default clock_timestamp(),
      locked_by text, locked_at timestamptz, delivered_at timestamptz,
      created_at timestamptz not null default clock_timestamp(), updated_at timestamptz not null default now());
    create schema mail;
    create table ${WORKER} (id uuid primary key default gen_random_uuid(), position bigint generated always as identity,
      event_name text not null, aggregate_id text, payload text not null, headers jsonb, status text not null default 'Pending',
      attempts int not null default 0, next_attempt_at timestamptz, occurred_at timestamptz not null default clock_timestamp());
    grant usage on schema public, mail to ${stage.role};
    grant select, update on ${OPEN_OUTBOX}, ${WORKER} to ${stage.role}`);
  const env = {
    DATABASE_URL: stage.relayUrl,
    OUTBOX_SCHEMAS: "*",
    OUTBOX_DESTINATION: "stdout:",
    TOPIC_TEMPLATE: "{header:tenant}.{type}",
    POLL_INTERVAL_MS: "100",
    NO_COLOR: "1",
  };
  return {
    ...stage,
    env,
    run: async (more = {}) => startService(["run"], { ...env, PORT: String(await freePort()), ...more }),
    command: (...args) => runCommand(args, env),
    write: async (table, names) => {
      const ids: Record<string, string> = {};
      for (const name of names.split(" ")) {
        const event = name.replace("!", "");
        ids[event] = await insert(stage, table, event, name.endsWith("!") ? "{}" : TENANT);
      }
      return ids;
    },
    mend: async (table, id) => {
      await stage.sql(`update ${table} set headers = '${TENANT}' where ${columnsOf(table).id} = $1`, [id]);
    },
    [Symbol.asyncDispose]: () => stage[Symbol.asyncDispose](),
  };
}

const TENANT = '{"tenant": "acme"}';

function columnsOf(table: string): { id: string; key: string; type: string } {
  if (table === OPEN_OUTBOX) return { id: "event_id", key: "partition_key", type: "event_type" };
  return { id: "id", key: "aggregate_id", type: table === WORKER ? "event_name" : "event_type" };
}

async function insert({ sql }: Stage, table: string, event: string, headers: string): Promise<string> {
  const { id, key, type } = columnsOf(table);
  const [row] = await sql<{ id: string }>(
    `insert into ${table} (${key}, ${type}, payload, headers) values ($1, 'order.placed', $2, $3) returning ${id} as id`,
    [event[0], `{"event": "${event}", "number": 9007199254740993}`, headers],
  );
  return row?.id ?? "";
}

/** The events in the order in which they were written to standard output, by name. */
export function deliveredBy({ stdout }: { stdout: (() => string) | string }): string {
  const text = typeof stdout === "string" ? stdout : stdout();
  return [...text.matchAll(/\\"event\\": ?\\"(\w+)\\"/g)].map((match) => match[1]).join(" ");
}

export async function untilDead({ sql }: Stage, count: number): Promise<void> {
  await until(`${count} dead letters wait`, async () => {
    const rows = await sql("select from outbox_relay.failed_events where resolved_at is null");
    return rows.length === count;
  });
}
