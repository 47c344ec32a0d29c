import { RelayError } from "../../core/errors.ts";
import type { QueueSource } from "../../ports/queue-store.ts";
import { displayTable, parseTableName, quoteLiteral, quoteTable, type TableName } from "../../postgres/identifiers.ts";
import { postgresMembership } from "../../postgres/membership.ts";
import { type Database, type DatabaseOptions, openDatabase } from "../../postgres/pool.ts";
import { OpenOutboxStore } from "./openoutbox-store.ts";
import { DEFAULT_TABLE } from "./openoutbox-table.ts";

export interface OpenOutboxSourceOptions {
  /** An open database, which stays the caller's to close, or how to open one. */
  readonly database: Database | DatabaseOptions;
  /** `schema.table`; default `public.openoutbox_events`. */
  readonly table?: string | TableName;
  readonly name?: string;
  /** How old a claim must be before it is taken away from a relay that is no living instance of ours. */
  readonly leaseMs?: number;
  /** For people: stands before the instance's id in `locked_by`. */
  readonly relayId?: string;
}

const LEASE_MS = 180_000;

/** A table that follows the Open Outbox contract. Nothing is sent before the first use. */
export function openOutboxSource(options: OpenOutboxSourceOptions): QueueSource {
  const { leaseMs = LEASE_MS, relayId } = options;
  const table = typeof options.table === "string" ? parseTableName(options.table) : (options.table ?? DEFAULT_TABLE);
  quoteTable(table);
  if (!(Number.isFinite(leaseMs) && leaseMs > 0)) {
    throw new RelayError("CONFIG_INVALID", `leaseMs is ${leaseMs}; it must be a positive number of milliseconds`);
  }
  if (relayId !== undefined) quoteLiteral(relayId);
  const lockPrefix = relayId === undefined ? "" : `${relayId}/`;
  const isBorrowed = "pool" in options.database;
  const database = "pool" in options.database ? options.database : openDatabase(options.database);
  return {
    name: options.name ?? displayTable(table),
    membership: postgresMembership(database),
    pipeline: (spec) => new OpenOutboxStore({ database, table, spec, leaseMs, lockPrefix }),
    close: async () => {
      if (!isBorrowed) await database.close();
    },
  };
}
