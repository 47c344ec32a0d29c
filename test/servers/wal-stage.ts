import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import pg from "pg";
import { type ErrorCode, isRelayError } from "../../src/core/errors.ts";
import { openDatabase } from "../../src/postgres/pool.ts";
import type { Checkpoint, LogRow } from "../../src/sources/postgres/log/log-kind.ts";
import { SettledAhead } from "../../src/sources/postgres/log/log-lane.ts";
import { type WalKind, walKind } from "../../src/sources/postgres/wal/wal-kind.ts";
import type { WalPosition, WalSegment } from "../../src/sources/postgres/wal/wal-position.ts";
import type { WalOptions } from "../../src/sources/postgres/wal/wal-setup.ts";
import type { PostgresServer } from "./postgres.ts";
import { until } from "./until.ts";

export const SPEC = {
  name: "log->bus",
  types: null,
  lanes: 4,
  attemptsMax: 5,
  payloadBytesMax: 100_000,
  headersMax: 10,
};
export const PLAIN = `id text primary key, event_type text, key text, payload text, headers jsonb, created_at timestamptz`;

export type Rows = LogRow<WalSegment>[];

export const codeIs =
  (code: ErrorCode, text = "") =>
  (error: unknown) => {
    assert.ok(isRelayError(error, code), String(error));
    assert.ok(error.message.includes(text), error.message);
    return true;
  };

/** One table of its own with a slot of its own, and who reads it. */
export async function openStage(server: PostgresServer, columns = PLAIN) {
  const unique = randomUUID().slice(0, 8);
  const table = { schema: `app's "${unique}"`, table: 'out;"box' };
  const quoted = `${pg.escapeIdentifier(table.schema)}.${pg.escapeIdentifier(table.table)}`;
  const admin = new pg.Client({ connectionString: server.url });
  admin.on("error", () => {});
  await admin.connect();
  await admin.query(`create schema ${pg.escapeIdentifier(table.schema)}; create table ${quoted} (${columns})`);
  const database = openDatabase({ url: server.url, applicationName: unique });
  const slot = `s_${unique}`;
  const kinds: WalKind[] = [];
  const kind = (options: Partial<WalOptions> = {}) => {
    const defaults = { database, table, messages: null, columns: {}, preset: "plain", spec: SPEC } as const;
    const made = walKind({ ...defaults, start: "beginning", slot, confirmAfterMs: 0, ...options });
    kinds.push(made);
    return made;
  };
  return {
    admin,
    quoted,
    slot,
    database,
    kind,
    async begin(options: Partial<WalOptions> = {}): Promise<{ readonly log: WalKind; readonly place: WalPosition }> {
      const log = kind(options);
      await log.prepare();
      return { log, place: (await log.decode(await log.start())).place };
    },
    async write(from: number, to: number, payload = "'p' || i"): Promise<void> {
      await admin.query(
        `insert into ${quoted} (id, event_type, key, payload) select i, 'T', 'k' || i % 10, ${payload} from generate_series(${from}::int, ${to}::int) i`,
      );
    },
    async [Symbol.asyncDispose]() {
      for (const made of kinds) await made.close();
      await database.close();
      await until("the slot is gone", () =>
        server
          .query("select pg_drop_replication_slot(slot_name) from pg_replication_slots where slot_name = $1", [slot])
          .then(
            () => true,
            // A server that was killed has no slots.
            (error: { readonly code?: string }) => error.code === "ECONNREFUSED",
          ),
      );
      await admin.end().catch(() => {});
    },
  };
}

export const request = (place: WalPosition) => ({ heads: new Map([[0, place]]), laneCount: 1 });

/** Everything up to the present end, and where that is. */
export async function readOn(
  log: WalKind,
  place: WalPosition,
  pageRows = 1_000,
): Promise<{ rows: Rows; head: WalPosition }> {
  const pass = await log.open(request(place));
  const rows: Rows = [];
  let head = place;
  for (;;) {
    const page = await pass.next(pageRows, 1e9);
    rows.push(...page.rows);
    head = page.heads.get(0) ?? head;
    if (page.isEnd) break;
  }
  await pass.end();
  return { rows, head };
}

/** Those of the rows that the checkpoint calls settled. */
export function aheadOf(log: WalKind, { ahead }: Checkpoint<WalSegment>, rows: Rows): Rows {
  const settledAhead = new SettledAhead(log, ahead);
  return rows.filter((row) => settledAhead.meet(row));
}

export const ids = (rows: Rows) => rows.map(({ event }) => event.id);
export const numbers = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, i) => String(from + i));
