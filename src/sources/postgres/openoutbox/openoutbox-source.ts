import { RelayError } from "../../../core/errors.ts";
import type { QueueSource } from "../../../ports/queue-store.ts";
import {
  displayTable,
  parseTableName,
  quoteLiteral,
  quoteTable,
  type TableName,
} from "../../../postgres/identifiers.ts";
import { postgresMembership } from "../../../postgres/membership.ts";
import { type Database, type DatabaseOptions, databaseOf } from "../../../postgres/pool.ts";
import { TableCounter } from "../counted-table.ts";
import { PostgresStore } from "../postgres-store.ts";
import { OpenOutboxClaims } from "./openoutbox-claims.ts";
import { DEFAULT_TABLE, openOutboxShape } from "./openoutbox-table.ts";
import { checkTable } from "./table-check.ts";

/** Options of `openOutboxSource`. */
export interface OpenOutboxSourceOptions {
  /** An open database, which the caller closes, or the options to open one. */
  readonly database: Database | DatabaseOptions;
  /** `schema.table`; default `public.openoutbox_events`. */
  readonly table?: string | TableName;
  readonly name?: string;
  /** How old a claim of another relay must be before it is released. */
  readonly leaseMs?: number;
  /** For people: precedes the instance's id in `locked_by`. */
  readonly relayId?: string;
}

const LEASE_MS = 180_000;

/** A table that follows the Open Outbox contract. It connects at the first use. */
export function openOutboxSource(options: OpenOutboxSourceOptions): QueueSource {
  const { leaseMs = LEASE_MS, relayId } = options;
  const table = typeof options.table === "string" ? parseTableName(options.table) : (options.table ?? DEFAULT_TABLE);
  quoteTable(table);
  if (!(Number.isFinite(leaseMs) && leaseMs > 0)) {
    throw new RelayError("CONFIG_INVALID", `leaseMs is ${leaseMs}; it must be a positive number of milliseconds`);
  }
  if (relayId !== undefined) quoteLiteral(relayId);
  const lockPrefix = relayId === undefined ? "" : `${relayId}/`;
  const { close, database } = databaseOf(options.database);
  const counter = new TableCounter({ database, readShape: async () => openOutboxShape(table) });
  return {
    name: options.name ?? displayTable(table),
    membership: postgresMembership(database),
    pipeline: (spec) =>
      new PostgresStore({
        database,
        spec,
        name: displayTable(table),
        readShape: () => checkTable(database, table),
        claims: (prepared) => new OpenOutboxClaims({ database, spec, table, leaseMs, lockPrefix }, prepared),
      }),
    backlogs: () => counter.count(),
    close,
  };
}
