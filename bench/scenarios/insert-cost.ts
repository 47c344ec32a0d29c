import pg from "pg";
import { uuidV7 } from "../../src/outbox/uuid-v7.ts";
import { managedTableSql } from "../../src/postgres/managed/managed-table.sql.ts";
import { WakeUpListener } from "../../src/postgres/managed/wake-up-listener.ts";
import { openDatabase } from "../../src/postgres/pool.ts";
import { type PostgresServer, startPostgres } from "../../test/servers/postgres.ts";
import { atMost, type Figure, measured, type Scenario, type ScenarioOptions } from "../figure.ts";
import { measureParts } from "../measure-parts.ts";

/** The machine's mood changes: the tables take turns, the first round warms up, and the better half of the others counts. */
const ROUNDS = 13;
const COUNTED = 6;
const WRITERS = 8;
const SINGLES = 2_000;
const BATCH_ROWS = 100;
const BATCHES = 200;
const COST_MAX = 10;
const PAYLOAD = JSON.stringify({ order: 4711, text: "x".repeat(170) });

const rowOf = (id: string, eventId: string) => `(
  id bigint generated always as identity ${id},
  event_id uuid not null default gen_random_uuid() ${eventId},
  event_type text not null,
  event_key text,
  payload text not null,
  headers jsonb,
  correlation_id text,
  traceparent text,
  tracestate text,
  created_at timestamptz not null default clock_timestamp()
)`;
/** `plain` has what any outbox needs: an order and unique ids. `bare` has no index for the order. */
const PLAIN = `create table public.plain ${rowOf("primary key", "unique")};
  create table public.bare ${rowOf("", "primary key")}`;
const COLUMNS = "(event_id, event_type, event_key, payload)";

type Table = "plain" | "bare" | "managed" | "waking";

/** What the writer pays: the managed outbox against plain tables with the same columns, without xid and partitions. */
export const insertCost: Scenario = async (options) => {
  const flags = ["fsync=on", "shared_buffers=512MB", "max_wal_size=4GB"].flatMap((setting) => ["-c", setting]);
  await using postgres = await startPostgres({ version: 18, onDisk: true, flags });
  await postgres.query(PLAIN);
  for (const table of ["managed", "waking"]) {
    const wakeUp = table === "waking";
    const name = { schema: "public", table };
    await postgres.query(managedTableSql({ table: name, payload: "text", partition: "1 day", wakeUp }));
  }
  await using writers = await openWriters(postgres);
  const stage = { ...options, postgres, clients: writers.clients };
  return await measureParts(options, {
    "single events": () => compare(stage, "on", 1),
    "single events, not waiting for the disk": () => compare(stage, "off", 1),
    "batches of 100": () => compare(stage, "on", BATCH_ROWS),
    "wake-up": () => compareWakeUp(stage),
  });
};

interface Stage extends ScenarioOptions {
  readonly postgres: PostgresServer;
  readonly clients: readonly pg.Client[];
}

async function openWriters(postgres: PostgresServer): Promise<AsyncDisposable & { clients: readonly pg.Client[] }> {
  const clients = Array.from({ length: WRITERS }, () => new pg.Client(postgres.url));
  await Promise.all(clients.map((client) => client.connect()));
  return {
    clients,
    [Symbol.asyncDispose]: async () => {
      await Promise.all(clients.map((client) => client.end()));
    },
  };
}

async function compare(stage: Stage, commit: "on" | "off", rows: number): Promise<Figure[]> {
  await Promise.all(stage.clients.map((client) => client.query(`set synchronous_commit = ${commit}`)));
  const { plain, bare, managed } = await inTurn(stage, rows, { plain: "plain", bare: "bare", managed: "managed" });
  return [
    measured("plain table", plain, "events/s"),
    measured("managed outbox", managed, "events/s"),
    atMost("cost over the plain table", (plain / managed - 1) * 100, "%", COST_MAX),
    measured("cost over one without an index for the order", (bare / managed - 1) * 100, "%"),
  ];
}

/** Apart, because it is a choice: while the relay is awake, and while it sleeps and each event rings. */
async function compareWakeUp(stage: Stage): Promise<Figure[]> {
  await Promise.all(stage.clients.map((client) => client.query("set synchronous_commit = on")));
  const awake = await inTurn(stage, 1, { managed: "managed", waking: "waking" });
  const database = openDatabase({ url: stage.postgres.url });
  const bell = new WakeUpListener(database, { schema: "public", table: "waking" }, () => {});
  if (!(await bell.arm())) throw new Error("the doorbell could not be armed: no figure can be given");
  const asleep = await inTurn(stage, 1, { managed: "managed", waking: "waking" });
  await bell.close();
  await database.close();
  return [
    measured("without", awake.managed, "events/s"),
    measured("with, relay awake", awake.waking, "events/s"),
    measured("cost, relay awake", (awake.managed / awake.waking - 1) * 100, "%"),
    measured("with, always notifying", asleep.waking, "events/s"),
    measured("cost, always notifying", (asleep.managed / asleep.waking - 1) * 100, "%"),
  ];
}

/** Events per second of each, by the mean of its better rounds. */
async function inTurn<Name extends string>(
  stage: Stage,
  rows: number,
  tables: Readonly<Record<Name, Table>>,
): Promise<Record<Name, number>> {
  const names = Object.keys(tables) as Name[];
  const rates = Object.fromEntries(names.map((name) => [name, []])) as unknown as Record<Name, number[]>;
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const name of round % 2 === 0 ? names : [...names].reverse()) {
      const rate = await insertAll(stage, tables[name], rows);
      if (round > 0) rates[name].push(rate);
    }
  }
  const best = (all: readonly number[]) => {
    const counted = [...all].sort((left, right) => right - left).slice(0, COUNTED);
    return counted.reduce((sum, rate) => sum + rate, 0) / counted.length;
  };
  return Object.fromEntries(names.map((name) => [name, best(rates[name])])) as Record<Name, number>;
}

async function insertAll({ clients, scale }: Stage, table: Table, rows: number): Promise<number> {
  const statements = Math.max(WRITERS, Math.round((rows === 1 ? SINGLES : BATCHES) * scale));
  let left = statements;
  const startMs = performance.now();
  await Promise.all(
    clients.map(async (client, writer) => {
      for (; left > 0; ) {
        left -= 1;
        await client.query(rows === 1 ? single(table, writer) : batch(table, writer, rows));
      }
    }),
  );
  return (statements * rows * 1_000) / (performance.now() - startMs);
}

function single(table: Table, writer: number): pg.QueryConfig {
  return {
    name: `one-${table}`,
    text: `insert into public.${table} ${COLUMNS} values ($1, $2, $3, $4) on conflict do nothing`,
    values: [uuidV7(), "order.placed", `customer-${writer}`, PAYLOAD],
  };
}

function batch(table: Table, writer: number, rows: number): pg.QueryConfig {
  return {
    name: `many-${table}`,
    text: `insert into public.${table} ${COLUMNS} select id, $2, $3, $4 from unnest($1::uuid[]) id on conflict do nothing`,
    values: [Array.from({ length: rows }, uuidV7), "order.placed", `customer-${writer}`, PAYLOAD],
  };
}
