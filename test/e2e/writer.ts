import { setTimeout as pauseMs } from "node:timers/promises";
import { crc32 } from "node:zlib";
import pg from "pg";
import { displayTable, quoteTable } from "../../src/postgres/identifiers.ts";
import { SeededRandom } from "../../src/testing/simulator/seeded-random.ts";
import type { LedgerRow, OutboxRow } from "./checker.ts";
import { type OutboxTable, pendingSql } from "./outbox-tables.ts";

export interface WriterOptions {
  readonly url: string;
  readonly tables: readonly OutboxTable[];
  readonly keys: number;
  readonly seed: number;
  /** Connections that write at a time. */
  readonly writers?: number;
  /** Between the transactions of one connection. */
  readonly pauseMs?: number;
}

/** An application with several connections that write events. Survives the loss of its database. */
export interface Writers {
  /** Events in committed transactions, as far as this process was told. */
  readonly committed: number;
  /** Ends every writer between two transactions. */
  stop(): Promise<void>;
}

/** Of all transactions; they leave holes in sequences and events that must never arrive. */
const ROLLBACK_SHARE = 0.1;
const NULL_KEY_SHARE = 0.05;

export async function createAggregates(client: pg.Client | pg.Pool, keys: number): Promise<void> {
  await client.query("insert into e2e.aggregates (key) select 'key-' || n from generate_series(1, $1::int) n", [keys]);
}

export function startWriters(options: WriterOptions): Writers {
  const stopping = new AbortController();
  let committed = 0;
  const random = new SeededRandom(options.seed);
  const loops = Array.from({ length: options.writers ?? 3 }, async () => {
    const draw = random.fork();
    while (!stopping.signal.aborted) {
      committed += await writeUntilLost(options, draw, stopping.signal);
      if (!stopping.signal.aborted) await pauseMs(50);
    }
  });
  return {
    get committed() {
      return committed;
    },
    stop: async () => {
      stopping.abort();
      await Promise.all(loops);
    },
  };
}

/** Returns the events committed on one connection, when it is lost or the signal aborts. */
async function writeUntilLost(options: WriterOptions, random: SeededRandom, signal: AbortSignal): Promise<number> {
  const client = new pg.Client({ connectionString: options.url, application_name: "writer" });
  client.on("error", () => {}); // a lost connection also rejects the statement
  let committed = 0;
  try {
    await client.connect();
    while (!signal.aborted) {
      committed += await writeTransaction(client, options, random);
      await pauseMs(options.pauseMs ?? 5);
    }
  } catch (error) {
    if (!isOutage(error)) throw error;
  } finally {
    await client.end().catch(() => {});
  }
  return committed;
}

/** Whatever comes without a class 22, 23 or 42 is the server's or the network's state, not a fault of the statement. */
function isOutage(error: unknown): boolean {
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  return !/^(22|23|42)/.test(code);
}

/**
 * The lock on a key comes before its events, so that the order of a key's transactions is the order of their inserts.
 * Keys are locked in one order by all, or the writers would deadlock each other. Every event is a statement of its own:
 * nothing tells the order inside one multi-row insert.
 */
async function writeTransaction(client: pg.Client, options: WriterOptions, random: SeededRandom): Promise<number> {
  const keys = new Set(Array.from({ length: random.int(1, 3) }, () => `key-${random.int(1, options.keys)}`));
  let count = 0;
  await client.query("begin");
  for (const key of [...keys].sort()) {
    const events = random.int(1, 3);
    const { rows } = await client.query<{ last: string }>(
      "update e2e.aggregates set last_sequence = last_sequence + $2 where key = $1 returning last_sequence as last",
      [key, events],
    );
    const last = Number(rows[0]?.last);
    // One table per key: there is no order between tables.
    const table = options.tables[Number(key.slice(4)) % options.tables.length]!;
    for (let at = 1; at <= events; at += 1) await insertEvent(client, table, key, last - events + at, random);
    count += events;
  }
  if (random.chance(NULL_KEY_SHARE)) {
    await insertEvent(client, random.pick(options.tables), null, 0, random);
    count += 1;
  }
  if (random.chance(ROLLBACK_SHARE)) {
    await client.query("rollback");
    return 0;
  }
  await client.query("commit");
  return count;
}

async function insertEvent(
  client: pg.Client,
  table: OutboxTable,
  key: string | null,
  sequence: number,
  random: SeededRandom,
): Promise<void> {
  const id = random.uuid();
  const payload = Buffer.from(`{ "key": ${JSON.stringify(key)},  "sequence": ${sequence}, "text": "grün ${id}" }`);
  await client.query(
    `with event as (
       insert into ${quoteTable(table)} (id, aggregate_id, event_type, payload) values ($1, $2, 'order.changed', $3)
       returning id)
     insert into e2e.ledger (source, id, key, sequence, crc) select $4, id, $5, $6, $7 from event`,
    [
      id,
      key,
      table.payload === "json" ? payload.toString() : payload,
      displayTable(table),
      key,
      sequence,
      crc32(payload),
    ],
  );
}

export async function readLedger(client: pg.Client | pg.Pool): Promise<LedgerRow[]> {
  const { rows } = await client.query<{ id: string; key: string | null; sequence: string; crc: string }>(
    "select id, key, sequence, crc from e2e.ledger",
  );
  return rows.map(({ id, key, sequence, crc }) => ({ id, key, sequence: Number(sequence), crc: Number(crc) }));
}

export async function readOutbox(client: pg.Client | pg.Pool, tables: readonly OutboxTable[]): Promise<OutboxRow[]> {
  const parts = tables.map((table) => `select id, not (${pendingSql(table)}) as delivered from ${quoteTable(table)}`);
  const { rows } = await client.query<OutboxRow>(parts.join(" union all "));
  return rows;
}

/** Events that still wait in the tables. */
export async function countPending(client: pg.Client | pg.Pool, tables: readonly OutboxTable[]): Promise<number> {
  const parts = tables.map((table) => `(select count(*) from ${quoteTable(table)} where ${pendingSql(table)})`);
  const { rows } = await client.query<{ count: string }>(`select ${parts.join(" + ")} as count`);
  return Number(rows[0]?.count);
}
