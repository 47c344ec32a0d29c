import { createHash } from "node:crypto";
import { RelayError } from "../../../core/errors.ts";
import { quoteLiteral } from "../../../postgres/identifiers.ts";
import type { Database } from "../../../postgres/pool.ts";
import { glance, transaction } from "../../../postgres/transaction.ts";
import { parseLsn } from "./wal-position.ts";

/** A replication slot as the server reports it. */
export interface SlotHealth {
  /** The log that the server keeps on disk for the slot; null when it keeps none any more. */
  readonly retainedBytes: number | null;
  /** `reserved`, `extended`, `unreserved` or `lost`. */
  readonly walStatus: string | null;
  /** How much can still be written before the slot is lost; null without a limit. */
  readonly safeBytes: number | null;
  readonly active: boolean;
  readonly activePid: number | null;
  readonly confirmedLsn: bigint | null;
  readonly plugin: string;
  readonly database: string;
  /** Whether standbys keep a copy of the slot; null where the server cannot. */
  readonly isFailover: boolean | null;
  /** The end of what the server has written and flushed. */
  readonly currentLsn: bigint;
  /** The server's current timeline. */
  readonly timeline: number;
}

/** The prefix of the relay's own slots and publications. */
export const SLOT_PREFIX = "outbox_relay_";
const READABLE_MAX = 24;

/** A name for a slot or publication: readable, and different for different words. */
export function derivedName(readable: string, ...words: readonly string[]): string {
  const plain = readable
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "_")
    .slice(0, READABLE_MAX)
    .replace(/^_|_$/g, "");
  const hash = createHash("sha256").update(JSON.stringify(words)).digest("hex").slice(0, 12);
  return `${SLOT_PREFIX}${plain === "" ? "" : `${plain}_`}${hash}`;
}

/**
 * The name of a pipeline's slot. All databases of a server share their slot names, so the name includes the database's
 * oid and the relay's identity in it.
 */
export async function slotName(database: Database, pipeline: string): Promise<string> {
  const context = database.errorContext("naming the replication slot");
  const [row] = await glance(
    database.pool,
    context,
    database.timeouts.readMs,
    `select i.uuid, d.oid from ${database.tables.identity} i, pg_catalog.pg_database d
     where d.datname = pg_catalog.current_database()`,
  );
  if (row === undefined) throw new RelayError("SCHEMA_MISSING", `${database.tables.identity} has no row`);
  return derivedName(pipeline, row[0] ?? "", row[1] ?? "", database.relaySchema, pipeline);
}

/** Returns null when there is no such slot. */
export async function slotHealth(database: Database, slot: string): Promise<SlotHealth | null> {
  const context = database.errorContext(`reading the replication slot ${slot}`);
  // Through JSON where older versions lack a column.
  const [row] = await glance(
    database.pool,
    context,
    database.timeouts.readMs,
    `select pg_catalog.pg_wal_lsn_diff(pg_catalog.pg_current_wal_lsn(), s.restart_lsn), s.wal_status, s.safe_wal_size,
       s.active, s.active_pid, s.confirmed_flush_lsn, s.plugin, s.database, pg_catalog.to_jsonb(s) ->> 'failover',
       pg_catalog.pg_current_wal_flush_lsn(), pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn())
     from pg_catalog.pg_replication_slots s where s.slot_name = ${quoteLiteral(slot)} and s.slot_type = 'logical'`,
  );
  if (row === undefined) return null;
  const number = (text: string | null | undefined) => (text == null ? null : Number(text));
  return {
    retainedBytes: number(row[0]),
    walStatus: row[1] ?? null,
    safeBytes: number(row[2]),
    active: row[3] === "t",
    activePid: number(row[4]),
    confirmedLsn: row[5] == null ? null : parseLsn(row[5]),
    plugin: row[6] ?? "",
    database: row[7] ?? "",
    isFailover: row[8] == null ? null : row[8] === "true",
    currentLsn: parseLsn(row[9] ?? ""),
    timeline: Number.parseInt((row[10] ?? "").slice(0, 8), 16),
  };
}

/** Throws SLOT_LOST when the slot cannot be read any more. */
export async function requireSlot(database: Database, slot: string): Promise<SlotHealth> {
  const health = await slotHealth(database, slot);
  if (health === null) throw new RelayError("SLOT_LOST", `The replication slot ${slot} does not exist: it was dropped`);
  if (isLost(health)) throw lostSlot(slot);
  return health;
}

/** The server has removed the slot's log. */
export function isLost({ confirmedLsn, walStatus }: SlotHealth): boolean {
  return walStatus === "lost" || confirmedLsn === null;
}

/** The error for a slot whose log the server has removed. */
export function lostSlot(slot: string, cause?: unknown): RelayError {
  const what = `The replication slot ${slot} is lost: it lagged by more than max_slot_wal_keep_size, or the server was replaced`;
  return new RelayError("SLOT_LOST", what, { cause });
}

/** Marks the connections that read slots, so that a relay recognizes its own kind. */
export const READER_SUFFIX = " wal";

/**
 * Disconnects a former reader of the relay's own kind: the caller owns the lane now, and the former owner may hang or
 * be behind a broken network. Other readers are left alone.
 */
export async function freeSlot(database: Database, slot: string): Promise<void> {
  const context = database.errorContext(`freeing the replication slot ${slot}`);
  await glance(
    database.pool,
    context,
    database.timeouts.readMs,
    `select pg_catalog.pg_terminate_backend(a.pid)
     from pg_catalog.pg_replication_slots s join pg_catalog.pg_stat_activity a on a.pid = s.active_pid
     where s.slot_name = ${quoteLiteral(slot)} and a.usename = current_user
       and right(a.application_name, ${READER_SUFFIX.length}) = ${quoteLiteral(READER_SUFFIX)}`,
  );
}

/** Drops the slot; the server then removes the log that it kept. */
export async function dropSlot(database: Database, slot: string): Promise<void> {
  const settings = slotSettings(database, `dropping the replication slot ${slot}`);
  await transaction(database.pool, settings, (session) =>
    session.rows("select pg_catalog.pg_drop_replication_slot($1)", [slot]),
  );
}

function slotSettings(database: Database, doing: string) {
  return { context: database.errorContext(doing), statementTimeoutMs: database.timeouts.readMs };
}
