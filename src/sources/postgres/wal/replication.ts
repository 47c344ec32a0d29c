import { setTimeout as pauseMs } from "node:timers/promises";
import { RelayError } from "../../../core/errors.ts";
import { translateError } from "../../../postgres/errors.ts";
import { quoteIdentifier } from "../../../postgres/identifiers.ts";
import type { Database } from "../../../postgres/pool.ts";
import { parseLsn, printLsn } from "./lsn.ts";
import { ReplicationLink } from "./replication-link.ts";
import { freeSlot, lostSlot } from "./slot.ts";
import { between, type WalPlace } from "./wal-place.ts";

/** The server at the other end of a link. */
export interface ServerIdentity {
  readonly system: string;
  readonly timeline: number;
}

/** A place in the present line of the server's history. */
export interface PresentPlace {
  readonly place: WalPlace;
  /** Where the line ended in which the place was written down; null when it is the present one. */
  readonly switchLsn: bigint | null;
}

/** How long a slot is waited for that its former reader is about to let go. */
const SLOT_WAIT_MS = 2_000;
const SLOT_PATIENCE_MS = 200;
const SLOT_LOOK_MS = 50;
const PAREN_OPTIONS_FROM = 15;
const FAILOVER_FROM = 17;

/** A connection for replication, with its work and its errors in the relay's words. */
export async function withLink<T>(
  database: Database,
  doing: string,
  work: (link: ReplicationLink) => Promise<T>,
): Promise<T> {
  let link: ReplicationLink | null = null;
  try {
    link = await ReplicationLink.connect(database);
    return await work(link);
  } catch (error) {
    throw replicationError(error, database, doing);
  } finally {
    await link?.end();
  }
}

export async function identify(link: ReplicationLink): Promise<ServerIdentity> {
  const [row] = await link.rows("IDENTIFY_SYSTEM");
  return { system: row?.[0] ?? "", timeline: Number(row?.[1]) };
}

/**
 * The place in the present line of the server's history. What was read beyond the point at which a standby was promoted
 * never happened here; from that point on everything is new.
 */
export async function placeOn(database: Database, place: WalPlace, timeline: number): Promise<PresentPlace> {
  const { lsn, timeline: former } = place.segment;
  if (former === timeline) return { place, switchLsn: null };
  const switchLsn = timeline > former ? (await readHistory(database, timeline)).get(former) : undefined;
  if (switchLsn === undefined) {
    const what = `The checkpoint is of timeline ${former}, which is no part of the server's history (${timeline})`;
    throw new RelayError("LOG_LOST", what);
  }
  if (lsn >= switchLsn) return { place: between(switchLsn, timeline), switchLsn };
  return { place: { segment: { ...place.segment, timeline }, mark: place.mark }, switchLsn };
}

/** Where each earlier line of history ended. The content is printed as it is, or as the digits of bytea. */
async function readHistory(database: Database, timeline: number): Promise<Map<number, bigint>> {
  const command = `TIMELINE_HISTORY ${timeline}`;
  const [row] = await withLink(database, "reading the server's history", (link) => link.rows(command));
  const content = row?.[1] ?? "";
  const text = content.startsWith("\\x") ? Buffer.from(content.slice(2), "hex").toString() : content;
  const lines = text.matchAll(/^\s*(\d+)\s+([0-9A-F]+\/[0-9A-F]+)/gim);
  return new Map([...lines].map(([, former, lsn]) => [Number(former), parseLsn(lsn ?? "")]));
}

interface NewSlot {
  /** Where it begins; null when somebody was quicker. */
  readonly lsn: bigint | null;
  /** The table had rows by then: they will never come by the log. */
  readonly hasRows: boolean;
}

/**
 * Makes a slot, and looks at the table as it was when the slot began. Waits for transactions that run at that moment.
 * A slot is not undone with its transaction: whoever gets an error or `hasRows` drops it.
 */
export async function createSlot(link: ReplicationLink, slot: string, look: string | null): Promise<NewSlot> {
  const [version] = await link.rows("select current_setting('server_version_num')::int / 10000");
  const major = Number(version?.[0]);
  const options = ["SNAPSHOT 'use'", ...(major >= FAILOVER_FROM ? ["FAILOVER true"] : [])].join(", ");
  const snapshot = major >= PAREN_OPTIONS_FROM ? `(${options})` : "USE_SNAPSHOT";
  // What the role may not look at should be found out before.
  const before = look === null ? [] : await link.rows(look);
  if (before.length > 0) return { lsn: null, hasRows: true };
  await link.rows("BEGIN READ ONLY ISOLATION LEVEL REPEATABLE READ");
  try {
    const [row] = await link.rows(`CREATE_REPLICATION_SLOT ${quoteIdentifier(slot)} LOGICAL pgoutput ${snapshot}`);
    const found = look === null ? [] : await link.rows(look);
    await link.rows("COMMIT");
    return { lsn: parseLsn(row?.[1] ?? ""), hasRows: found.length > 0 };
  } catch (error) {
    if (stateOf(error) === "42710") return { lsn: null, hasRows: false };
    throw error;
  }
}

/** Begins to send from the place on. A former reader that does not leave by itself is ended, if it is one of ours. */
export async function startReplication(
  database: Database,
  link: ReplicationLink,
  listener: Parameters<ReplicationLink["start"]>[1],
  request: {
    readonly slot: string;
    readonly publication: string;
    readonly lsn: bigint;
    readonly hasMessages: boolean;
  },
): Promise<void> {
  const { hasMessages, lsn, publication, slot } = request;
  const options = [
    "proto_version '1'",
    `publication_names ${literal(quoteIdentifier(publication))}`,
    ...(hasMessages ? ["messages 'true'"] : []),
  ];
  const place = `${quoteIdentifier(slot)} LOGICAL ${printLsn(lsn)}`;
  const startMs = performance.now();
  const deadlineMs = startMs + SLOT_WAIT_MS;
  for (;;) {
    try {
      return await link.start(`START_REPLICATION SLOT ${place} (${options.join(", ")})`, listener);
    } catch (error) {
      if (stateOf(error) !== "55006" || performance.now() > deadlineMs) throw error;
    }
    if (performance.now() - startMs > SLOT_PATIENCE_MS) await freeSlot(database, slot);
    await pauseMs(SLOT_LOOK_MS);
  }
}

/** In commands of replication a backslash is nothing special. */
function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

function stateOf(error: unknown): string | undefined {
  return (error as { readonly code?: string } | null)?.code;
}

/** Errors of a link in the relay's words; `slot` where it is about one. */
export function replicationError(error: unknown, database: Database, doing: string, slot = ""): RelayError {
  const state = stateOf(error);
  const message = error instanceof Error ? error.message : "";
  if (state === "55006") {
    const what = `${doing}: the replication slot is read by another connection (${message})`;
    return new RelayError("DATABASE_BUSY", what, { cause: error });
  }
  if (state === "42704" && message.includes("replication slot")) {
    return new RelayError("SLOT_LOST", `${doing}: ${message}: somebody dropped it`, { cause: error });
  }
  if (state === "42704" && message.includes("publication")) {
    const what = `${doing}: ${message} at this place of the log: it was dropped or made anew since`;
    return new RelayError("LOG_LOST", what, { cause: error });
  }
  if (/can no longer (get changes from|access) replication slot/.test(message)) return lostSlot(slot, error);
  if (state === "42501" && /replication|wal ?sender/i.test(message)) {
    const what = `${doing}: ${message}. Run: alter role ${quoteIdentifier(database.role)} replication;`;
    return new RelayError("GRANT_MISSING", what, { cause: error });
  }
  if (state === "53400") {
    const what = `${doing}: ${message}. Run: alter system set max_replication_slots = 20; and restart the server`;
    return new RelayError("DATABASE_REFUSED", what, { cause: error });
  }
  return translateError(error, database.errorContext(doing));
}
