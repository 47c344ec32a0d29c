import { RelayError } from "../../../core/errors.ts";
import type { PipelineSpec } from "../../../ports/queue-store.ts";
import type { ColumnNames } from "../../../postgres/column-names.ts";
import { displayTable, quoteTable } from "../../../postgres/identifiers.ts";
import type { Database } from "../../../postgres/pool.ts";
import { transaction } from "../../../postgres/transaction.ts";
import { readColumns, type TableReference } from "../table-discovery.ts";
import { columnsOf, type EventParts, eventPartsOf, keptNames, type WalPreset } from "./event-parts.ts";
import { ensurePublication, type Publication, publicationOf, requirePublication } from "./publication.ts";
import { createSlot, identify, type ServerIdentity, withLink } from "./replication.ts";
import { dropSlot, isLost, slotHealth, slotName } from "./slot.ts";
import { between, writePosition } from "./wal-position.ts";
import type { WalContent } from "./wal-reading.ts";

/** What is known of the server once it was checked. */
export interface WalSetup {
  readonly slot: string;
  readonly publication: string;
  readonly content: WalContent;
  readonly server: ServerIdentity;
}

/** Checks whether the log can be read, and creates the publication. `before` is how the table was read so far. */
export async function setUp(options: WalOptions, before?: EventParts, readsFormerNames = false): Promise<WalSetup> {
  const { columns, database, headerColumns = [], messages, preset, spec, table } = options;
  await requireLogicalLevel(options);
  const found = table === null ? null : await readColumns(database, table);
  const names = keptNames(columns, before);
  const content: WalContent = {
    table: found && {
      name: found.name,
      parts: eventPartsOf(found.name, found.columns, names, preset, headerColumns),
      columns: found.columns.filter(({ isGenerated }) => !isGenerated).map(({ name, typeOid }) => ({ name, typeOid })),
      readsFormerNames,
    },
    prefix: messages?.prefix ?? null,
    limits: { payloadBytesMax: spec.payloadBytesMax, headersMax: spec.headersMax },
  };
  const slot = options.slot ?? (await slotName(database, spec.name));
  const publication = options.publication ?? publicationOf(found?.name ?? null);
  const server = await withLink(database, "connecting for replication", identify);
  const wanted = wantedPublication(publication, content.table);
  // With an existing slot, creating the publication now would hide that events were not published before.
  if ((await slotHealth(database, slot)) === null) await ensurePublication(database, wanted);
  else await requirePublication(database, wanted);
  return { slot, publication, content, server };
}

/** The publication that a table's columns need. */
export function wantedPublication(name: string, table: WalContent["table"]): Publication {
  return { name, table: table?.name ?? null, columns: table === null ? [] : columnsOf(table.parts) };
}

async function requireLogicalLevel({ database }: WalOptions): Promise<void> {
  const settings = {
    context: database.errorContext("reading wal_level"),
    statementTimeoutMs: database.timeouts.statementMs,
    readOnly: true,
  };
  const [row] = await transaction(database.pool, settings, (session) =>
    session.rows("select current_setting('wal_level'), pg_catalog.pg_is_in_recovery()"),
  );
  if (row?.[1] === "t") {
    throw new RelayError("DATABASE_REFUSED", "The server is a standby: the relay can read the log only on the primary");
  }
  if (row?.[0] === "logical") return;
  const what = `wal_level is ${row?.[0]}: the log lacks the information to decode changes. Run: alter system set wal_level = 'logical'; and restart the server`;
  throw new RelayError("DATABASE_REFUSED", what);
}

/**
 * The start of a log that was never read: the beginning of its slot. An existing slot is read on: either a crash came
 * before its first checkpoint, or it is another reader's that the user named. An operator's reset also calls this, and
 * only a reset recreates a lost slot.
 */
export async function firstPosition(options: WalOptions, setup: WalSetup): Promise<string> {
  const { database, start } = options;
  const { content, server, slot } = setup;
  const health = await slotHealth(database, slot);
  const isUsable = health !== null && !isLost(health);
  if (isUsable && health.plugin !== "pgoutput") {
    const what = `The replication slot ${slot} uses the plugin ${health.plugin}: the relay can read only slots of pgoutput`;
    throw new RelayError("CONFIG_INVALID", what);
  }
  if (isUsable) return writePosition(server.system, between(health.confirmedLsn ?? 0n, server.timeline), []);
  if (health !== null) await dropSlot(database, slot);
  if (start instanceof Date) {
    const what = "A write-ahead log cannot be read from a time in the past. Set the start to `now`";
    throw new RelayError("CONFIG_INVALID", what);
  }
  const made = await makeSlot(options, content, slot);
  // Another instance created it first.
  if (made === null) return await firstPosition(options, setup);
  return writePosition(server.system, between(made, server.timeline), []);
}

/** Returns where the new slot begins; null when it existed already. */
async function makeSlot({ database, start }: WalOptions, content: WalContent, slot: string): Promise<bigint | null> {
  const table = content.table?.name ?? null;
  const look = start === "now" || table === null ? null : `select from ${quoteTable(table)} limit 1`;
  const { hasRows, lsn } = await withLink(database, `creating the replication slot ${slot}`, async (link) => {
    // Creating a slot waits for every running transaction.
    await link.rows(`set lock_timeout = ${database.timeouts.readMs}`);
    return await createSlot(link, slot, look);
  });
  if (!hasRows) return lsn;
  if (lsn !== null) await dropSlot(database, slot);
  const name = table === null ? "The table" : displayTable(table);
  const what = `${name} has rows that are older than its slot, so the write-ahead log does not contain them. Set the start to \`now\` to skip them, or delete them`;
  throw new RelayError("CONFIG_INVALID", what);
}

/** Options of `walKind`. */
export interface WalOptions {
  readonly database: Database;
  /** The table whose inserts are events; null for messages only. */
  readonly table: TableReference | null;
  /** Messages of `pg_logical_emit_message` with this prefix are events too. */
  readonly messages: { readonly prefix: string } | null;
  readonly columns: ColumnNames;
  readonly preset: WalPreset;
  /** More columns to send as headers: `column` or `column:header`. */
  readonly headerColumns?: readonly string[];
  readonly spec: PipelineSpec;
  /** Where the first reading begins. The log has no rows from before its slot, so a table that has rows needs `now`. */
  readonly start: "beginning" | "now" | Date;
  /** A slot of its own by default. An existing slot is read on from where its former reader stopped. */
  readonly slot?: string;
  readonly publication?: string;
  /** How long a settled position is withheld from the server; see `WalStream`. */
  readonly confirmAfterMs?: number;
}

/** Long enough for a standby to receive the checkpoint before the slot moves. */
export const CONFIRM_AFTER_MS = 5_000;
