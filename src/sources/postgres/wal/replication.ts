import { setTimeout as pauseMs } from "node:timers/promises";
import { RelayError } from "../../../core/errors.ts";
import { translateError } from "../../../postgres/errors.ts";
import { quoteIdentifier } from "../../../postgres/identifiers.ts";
import type { Database } from "../../../postgres/pool.ts";
import { glance } from "../../../postgres/transaction.ts";
import { ReplicationLink } from "./replication-link.ts";
import { freeSlot, isLost, lostSlot, slotHealth } from "./slot.ts";
import { between, parseLsn, printLsn, type WalPosition, writePosition } from "./wal-position.ts";

/** The server at the other end of a link. */
export interface ServerIdentity {
  readonly system: string;
  readonly timeline: number;
}

/** A position in the current timeline of the server. */
export interface CurrentPosition {
  readonly place: WalPosition;
  /** Where the timeline ended in which the position was stored; null when it is the current one. */
  readonly switchLsn: bigint | null;
}

/** How long to wait for a slot whose former reader is about to release it. */
const SLOT_WAIT_MS = 2_000;
/** After this long, a former reader of our own is disconnected. */
const SLOT_TAKEOVER_MS = 200;
const SLOT_LOOK_MS = 50;
const PAREN_OPTIONS_FROM = 15;
const FAILOVER_FROM = 17;

/** Runs work on a replication connection, and translates its errors. */
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
    throw await replicationError(error, database, doing);
  } finally {
    await link?.end();
  }
}

/** Reads the server's identity and timeline. */
export async function identify(link: ReplicationLink): Promise<ServerIdentity> {
  const [row] = await link.rows("IDENTIFY_SYSTEM");
  return { system: row?.[0] ?? "", timeline: Number(row?.[1]) };
}

/**
 * The position in the server's current timeline. A position beyond the point where a standby was promoted never
 * happened here: the reading continues at that point.
 */
export async function positionOn(database: Database, place: WalPosition, timeline: number): Promise<CurrentPosition> {
  const { lsn, timeline: former } = place.segment;
  if (former === timeline) return { place, switchLsn: null };
  const switchLsn = timeline > former ? (await readHistory(database, timeline)).get(former) : undefined;
  if (switchLsn === undefined) {
    const what = `The checkpoint is on timeline ${former}, which is not in the server's history (${timeline})`;
    throw new RelayError("LOG_LOST", what);
  }
  if (lsn >= switchLsn) return { place: between(switchLsn, timeline), switchLsn };
  return { place: { segment: { ...place.segment, timeline }, mark: place.mark }, switchLsn };
}

/** Where each earlier timeline ended. The server sends the content as text or as hexadecimal bytea. */
async function readHistory(database: Database, timeline: number): Promise<Map<number, bigint>> {
  const command = `TIMELINE_HISTORY ${timeline}`;
  const [row] = await withLink(database, "reading the server's history", (link) => link.rows(command));
  const content = row?.[1] ?? "";
  const text = content.startsWith("\\x") ? Buffer.from(content.slice(2), "hex").toString() : content;
  const lines = text.matchAll(/^\s*(\d+)\s+([0-9A-F]+\/[0-9A-F]+)/gim);
  return new Map([...lines].map(([, former, lsn]) => [Number(former), parseLsn(lsn ?? "")]));
}

interface NewSlot {
  /** Where it begins; null when another instance created it first. */
  readonly lsn: bigint | null;
  /** The table already had rows, which will never appear in the log. */
  readonly hasRows: boolean;
}

/**
 * Creates a slot, and checks the table as it was when the slot began. The server waits for transactions that run at
 * that moment. A rollback does not remove a slot: on an error or with `hasRows`, the caller drops it.
 */
export async function createSlot(link: ReplicationLink, slot: string, look: string | null): Promise<NewSlot> {
  const [version] = await link.rows("select current_setting('server_version_num')::int / 10000");
  const major = Number(version?.[0]);
  const options = ["SNAPSHOT 'use'", ...(major >= FAILOVER_FROM ? ["FAILOVER true"] : [])].join(", ");
  const snapshot = major >= PAREN_OPTIONS_FROM ? `(${options})` : "USE_SNAPSHOT";
  // Find out before the slot exists whether the role can read the table.
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

/** Starts sending from the position. If a former reader of ours does not release the slot, it is disconnected. */
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
    if (performance.now() - startMs > SLOT_TAKEOVER_MS) await freeSlot(database, slot);
    await pauseMs(SLOT_LOOK_MS);
  }
}

/** Replication commands treat a backslash as a normal character. */
function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

function stateOf(error: unknown): string | undefined {
  return (error as { readonly code?: string } | null)?.code;
}

/**
 * Translates errors of a link; `slot` where it reads one. The server's messages come in its own language, so the catalog
 * shows what an error is about.
 */
export async function replicationError(
  error: unknown,
  database: Database,
  doing: string,
  slot: string | null = null,
): Promise<RelayError> {
  const state = stateOf(error);
  const message = error instanceof Error ? error.message : "";
  if (state === "55006") {
    const what = `${doing}: the replication slot is in use by another connection (${message})`;
    return new RelayError("DATABASE_BUSY", what, { cause: error });
  }
  if (slot !== null && (state === UNDEFINED_OBJECT || state === NOT_READABLE)) {
    const lost = await slotFault(error, database, slot, doing);
    if (lost !== null) return lost;
  }
  if (state === "42501" && !isAboutTable(error) && (await lacksReplication(database))) {
    const what = `${doing}: ${message}. Run: alter role ${quoteIdentifier(database.role)} replication;`;
    return new RelayError("GRANT_MISSING", what, { cause: error });
  }
  if (state === "53400") {
    const what = `${doing}: ${message}. Run: alter system set max_replication_slots = 20; and restart the server`;
    return new RelayError("DATABASE_REFUSED", what, { cause: error });
  }
  return translateError(error, database.errorContext(doing));
}

/** A slot or a publication that does not exist, and a slot that cannot be read any more. */
const UNDEFINED_OBJECT = "42704";
const NOT_READABLE = "55000";

/** Null when the slot explains nothing, or cannot be examined now: the next attempt to read it does. */
async function slotFault(error: unknown, database: Database, slot: string, doing: string): Promise<RelayError | null> {
  const health = await slotHealth(database, slot).catch(() => undefined);
  if (health === undefined) return null;
  const message = error instanceof Error ? error.message : "";
  if (health === null) return new RelayError("SLOT_LOST", `${doing}: ${message}: it was dropped`, { cause: error });
  if (isLost(health)) return lostSlot(slot, error);
  if (stateOf(error) !== UNDEFINED_OBJECT) return null;
  const what = `${doing}: ${message} at this position of the log: it was dropped or recreated since`;
  return new RelayError("LOG_LOST", what, { cause: error });
}

/** The function of the server that raised the error is never translated. */
function isAboutTable(error: unknown): boolean {
  return (error as { readonly routine?: string } | null)?.routine === "aclcheck_error";
}

async function lacksReplication(database: Database): Promise<boolean> {
  const text = "select rolreplication or rolsuper from pg_catalog.pg_roles where rolname = current_user";
  const context = database.errorContext("reading the role's attributes");
  const [row] = await glance(database.pool, context, database.timeouts.readMs, text).catch(() => []);
  return row?.[0] === "f";
}

/** The end of the log as a checkpoint: everything committed from now on lies after it. */
export async function currentWalPosition(database: Database): Promise<string> {
  return await withLink(database, "asking for the end of the log", async (link) => {
    const [row] = await link.rows("IDENTIFY_SYSTEM");
    return writePosition(row?.[0] ?? "", between(parseLsn(row?.[2] ?? ""), Number(row?.[1])), []);
  });
}
