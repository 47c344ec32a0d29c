import { RelayError } from "../../../core/errors.ts";
import { displayTable, quoteTable } from "../../../postgres/identifiers.ts";
import { transaction } from "../../../postgres/transaction.ts";
import { readColumns } from "../table-discovery.ts";
import { columnsOf, type EventParts, eventPartsOf, keptNames } from "./event-parts.ts";
import { ensurePublication, type Publication, publicationOf, requirePublication } from "./publication.ts";
import { createSlot, identify, type ServerIdentity, withLink } from "./replication.ts";
import { dropSlot, slotHealth, slotName } from "./slot.ts";
import type { WalOptions } from "./wal-options.ts";
import { between, writePlace } from "./wal-place.ts";
import type { WalContent } from "./wal-reading.ts";

/** What is known once the server was looked at. */
export interface WalSetup {
  readonly slot: string;
  readonly publication: string;
  readonly content: WalContent;
  readonly server: ServerIdentity;
}

/** Looks whether the log can be read, and makes the publication that it needs. `before` is how the table was read so far. */
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
  // Beside a slot that is there already a new one would hide that something was not published meanwhile.
  if ((await slotHealth(database, slot)) === null) await ensurePublication(database, wanted);
  else await requirePublication(database, wanted);
  return { slot, publication, content, server };
}

export function wantedPublication(name: string, table: WalContent["table"]): Publication {
  return { name, table: table?.name ?? null, columns: table === null ? [] : columnsOf(table.parts) };
}

async function requireLogicalLevel({ database }: WalOptions): Promise<void> {
  const settings = {
    context: database.errorContext("looking at wal_level"),
    statementTimeoutMs: database.timeouts.statementMs,
    readOnly: true,
  };
  const [row] = await transaction(database.pool, settings, (session) =>
    session.rows("select current_setting('wal_level'), pg_catalog.pg_is_in_recovery()"),
  );
  if (row?.[1] === "t") {
    throw new RelayError("DATABASE_REFUSED", "The server is a standby: the log is read from the primary only");
  }
  if (row?.[0] === "logical") return;
  const what = `wal_level is ${row?.[0]}: the log holds too little to be read. Run: alter system set wal_level = 'logical'; and restart the server`;
  throw new RelayError("DATABASE_REFUSED", what);
}

/**
 * Where a reading begins that never was: at a slot's beginning. A slot that is there is read on, since it is one that a
 * crash kept from being noted, or another reader's that the user named. Called when a person resets the reading too:
 * only then a slot that is lost is made anew.
 */
export async function firstPlace(options: WalOptions, setup: WalSetup): Promise<string> {
  const { database, start } = options;
  const { content, server, slot } = setup;
  const health = await slotHealth(database, slot);
  const isUsable = health !== null && health.walStatus !== "lost" && health.confirmedLsn !== null;
  if (isUsable && health.plugin !== "pgoutput") {
    const what = `The replication slot ${slot} is of the plugin ${health.plugin}: only slots of pgoutput can be read on`;
    throw new RelayError("CONFIG_INVALID", what);
  }
  if (isUsable) return writePlace(server.system, between(health.confirmedLsn ?? 0n, server.timeline), []);
  if (health !== null) await dropSlot(database, slot);
  if (start instanceof Date) {
    const what = "A write-ahead log can be read from now on only, not from a time in the past: write `now`";
    throw new RelayError("CONFIG_INVALID", what);
  }
  const made = await makeSlot(options, content, slot);
  // Somebody was quicker.
  if (made === null) return await firstPlace(options, setup);
  return writePlace(server.system, between(made, server.timeline), []);
}

/** Where the new slot begins; null when it was there already. */
async function makeSlot({ database, start }: WalOptions, content: WalContent, slot: string): Promise<bigint | null> {
  const table = content.table?.name ?? null;
  const look = start === "now" || table === null ? null : `select from ${quoteTable(table)} limit 1`;
  const { hasRows, lsn } = await withLink(database, `creating the replication slot ${slot}`, async (link) => {
    // It waits for every transaction that runs at this moment.
    await link.rows(`set lock_timeout = ${database.timeouts.readMs}`);
    return await createSlot(link, slot, look);
  });
  if (!hasRows) return lsn;
  if (lsn !== null) await dropSlot(database, slot);
  const name = table === null ? "The table" : displayTable(table);
  const what = `${name} has rows from before its slot, which the write-ahead log does not show: begin with \`now\` to leave them out, or delete them`;
  throw new RelayError("CONFIG_INVALID", what);
}
