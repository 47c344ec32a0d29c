import { setTimeout as pauseMs } from "node:timers/promises";
import { RelayError } from "../../../core/errors.ts";
import { createIndexSql } from "../../../postgres/create-index.ts";
import { quoteIdentifier, quoteLiteral } from "../../../postgres/identifiers.ts";
import { SERVER_INCARNATION } from "../../../postgres/server-incarnation.ts";
import type { Checkpoint, LogKind, LogPosition, PassRequest } from "../log/log-kind.ts";
import { readPosition, writePosition } from "./checkpoint-text.ts";
import { BEGINNING, type Difference } from "./difference.ts";
import { HorizonPass } from "./horizon-pass.ts";
import { TableLog, type TableLogOptions } from "./table-log.ts";
import { readTailShape, type TailShape } from "./tail-shape.ts";

/** Options of `horizonKind`. */
export interface HorizonOptions extends TableLogOptions {
  /** How long open writers can delay the reading before it is reported. */
  readonly reportAfterMs?: number;
  /** The pause between two checks of the writers after a final position was found. */
  readonly pauseMs?: number;
}

/** The pause between two checks of the writers: after a final position was found, and while a writer is open. */
const PAUSE_MS = { found: 100, waiting: 20 };
/** After this long, an open writer is checked less often. */
const SHORT_MS = 500;
const REPORT_AFTER_MS = 10_000;
/** For counting: includes every row. */
const NO_HORIZON = "9223372036854775807";

/** A position that is final once these transactions have ended. */
interface Candidate {
  readonly position: number;
  readonly writers: ReadonlySet<string>;
}

/**
 * An append-only table that cannot have a column for the writing transaction. Positions are assigned before their rows
 * are committed, so the rows do not show which gaps will still be filled. But a transaction that draws a position has
 * locked the table for writing, and keeps that lock until it ends. So the relay reads the highest committed position
 * first and the holders of such locks afterwards: once all of those have ended, everything up to that position is
 * final.
 *
 * The cost: a transaction that wrote and stays open delays everything after it. No writer waits for the relay. The
 * insert itself must draw the position: numbers that an application draws beforehand, or that sessions cache (a
 * sequence with CACHE), can appear below the horizon and would be skipped.
 */
export function horizonKind(options: HorizonOptions): LogKind<Difference> {
  return new HorizonKind(options);
}

class HorizonKind extends TableLog<HorizonOptions> implements LogKind<Difference> {
  readonly readsInOrder = true;
  /** Everything up to here is final. */
  #horizon = 0;
  #candidate: Candidate | null = null;
  /** The server's incarnation in which both were found: after a crash the server can assign positions again. */
  #incarnation: string | null = null;
  #oid = "0";
  #nextLookMs = Number.NEGATIVE_INFINITY;
  #busySinceMs: number | null = null;

  protected async look(): Promise<TailShape> {
    const { database, reference } = this.options;
    const shape = await readTailShape(database, reference, { names: this.columns, xid: null });
    if (!shape.hasPositionIndex) {
      const { events, isPartitioned, positionName } = shape;
      const index = createIndexSql({ table: events.name, columns: quoteIdentifier(positionName), isPartitioned });
      throw new RelayError("INDEX_MISSING", `${this.table} has no index on its position. Run: ${index}`);
    }
    const [row] = await this.rows("reading the log", tableFactsSql(shape));
    this.#oid = row?.[0] ?? "0";
    if (row?.[1] == null || row[1] === "1") return shape;
    const what = `The sequence ${row[2]} of ${this.table} lets sessions cache ${row[1]} numbers, so rows could be`;
    throw new RelayError("COLUMN_MISTYPED", `${what} skipped. Run: alter sequence ${row[2]} cache 1.`);
  }

  async start(): Promise<string> {
    const { first } = await this.findStart();
    if (first !== null) return writePosition(positionAt(first - 1), []);
    let horizon = await this.#look();
    for (let looks = 1; horizon === null && looks < SHORT_MS / PAUSE_MS.waiting; looks += 1) {
      await pauseMs(PAUSE_MS.waiting);
      horizon = await this.#look();
    }
    if (horizon === null) throw this.#busy("be read from now on");
    return writePosition(positionAt(horizon), []);
  }

  encode(place: LogPosition<Difference>, ahead: readonly LogPosition<Difference>[]): string {
    return writePosition(place, ahead);
  }

  async decode(checkpoint: string): Promise<Checkpoint<Difference>> {
    const { place, ahead } = readPosition(checkpoint, this.table, "horizon");
    const { shape } = await this.scopeFor(1);
    const text = `select max(${shape.position}), ${SERVER_INCARNATION} from ${shape.events.quotedName} t`;
    const [row] = await this.rows("checking a checkpoint", text);
    if (row?.[0] != null && Number(row[0]) < place.mark) {
      const what = `The checkpoint of ${this.options.spec.name} is ahead of the log ${this.table}: it is at position`;
      const cause = "The table was replaced, or restored from an older copy.";
      throw new RelayError("LOG_LOST", `${what} ${place.mark}, the table ends at ${row[0]}. ${cause}`);
    }
    const segment = { from: BEGINNING, to: null, incarnation: row?.[1] ?? "" };
    return { place: { segment, mark: place.mark }, ahead: [...ahead].map((mark) => ({ segment, mark })) };
  }

  async open(request: PassRequest<Difference>): Promise<HorizonPass> {
    const reader = await this.readerFor(request.laneCount);
    return new HorizonPass(reader, this.table, request, (after) => this.#horizonBehind(after));
  }

  async probe({ heads }: PassRequest<Difference>): Promise<boolean> {
    if (heads.size === 0) return false;
    const after = lowest(heads);
    if (after < this.#horizon) return true;
    return performance.now() >= this.#nextLookMs && (await this.#hasRowsBehind(after));
  }

  async backlog({ heads, laneCount }: PassRequest<Difference>, max: number) {
    const difference = { from: BEGINNING, to: NO_HORIZON };
    const stretches = [...heads].map(([lane, { mark }]) => ({ difference, after: mark, lanes: [lane] }));
    return await this.countRows(stretches, laneCount, max);
  }

  /** The highest final position; the known one when there is nothing new or the next check is not due. */
  async #horizonBehind(after: number): Promise<number> {
    if (after < this.#horizon) return this.#horizon;
    if (performance.now() < this.#nextLookMs || !(await this.#hasRowsBehind(after))) return this.#horizon;
    const horizon = await this.#look();
    if (horizon !== null) return horizon;
    if (performance.now() - (this.#busySinceMs ?? 0) > (this.options.reportAfterMs ?? REPORT_AFTER_MS))
      throw this.#busy();
    return this.#horizon;
  }

  /** Returns null while an open writer delays the reading. */
  async #look(): Promise<number | null> {
    const { shape } = await this.scopeFor(1);
    const [row] = await this.rows("finding the final position", openWritersSql(shape, this.#oid));
    const nowMs = performance.now();
    if (this.#incarnation !== null && this.#incarnation !== row?.[1]) [this.#horizon, this.#candidate] = [0, null];
    this.#incarnation = row?.[1] ?? "";
    const writers = new Set(JSON.parse(row?.[2] ?? "[]") as string[]);
    const found = { position: Number(row?.[0] ?? 0), writers };
    const isOver = (candidate: Candidate) => ![...candidate.writers].some((writer) => writers.has(writer));
    const final = [found, this.#candidate].find((it) => it !== null && isOver(it));
    if (final != null) this.#horizon = Math.max(this.#horizon, final.position);
    if (final != null || this.#candidate === null) this.#candidate = final === found ? null : found;
    this.#busySinceMs = final != null ? null : (this.#busySinceMs ?? nowMs);
    const isSlow = this.#busySinceMs !== null && nowMs - this.#busySinceMs > SHORT_MS;
    const isWaiting = this.#candidate !== null && !isSlow;
    this.#nextLookMs = nowMs + (isWaiting ? PAUSE_MS.waiting : (this.options.pauseMs ?? PAUSE_MS.found));
    return final != null ? this.#horizon : null;
  }

  async #hasRowsBehind(after: number): Promise<boolean> {
    const { shape } = await this.scopeFor(1);
    const { events, position } = shape;
    const text = `select 1 from ${events.quotedName} t where ${position} > ${after} order by ${position} limit 1`;
    return (await this.glance("searching for events", text)).length > 0;
  }

  #busy(what = "be read further"): RelayError {
    const seconds = Math.round((performance.now() - (this.#busySinceMs ?? performance.now())) / 1_000);
    const pids = [...(this.#candidate?.writers ?? [])].map((writer) => writer.split(" ")[1] ?? "0");
    const processes = pids.map((pid) => (pid === "0" ? "a prepared transaction" : `process ${pid}`)).join(", ");
    const cause = `a transaction that wrote to it has been open for ${seconds} s or more (${processes})`;
    const cure =
      "End it (pg_stat_activity shows xact_start), or add an xid8 column to the table: reading by it waits for no writer";
    return new RelayError("DATABASE_BUSY", `${this.table} cannot ${what}: ${cause}. ${cure}.`);
  }
}

/** The table's oid, the CACHE of the position's sequence, and that sequence's name. */
function tableFactsSql({ events, positionName }: TailShape): string {
  const table = quoteLiteral(events.quotedName);
  const sequence = `pg_get_serial_sequence(${table}, ${quoteLiteral(positionName)})`;
  return `select ${table}::regclass::oid, (select q.seqcache from pg_catalog.pg_sequence q
    where q.seqrelid = ${sequence}::regclass), ${sequence}`;
}

function positionAt(mark: number): LogPosition<Difference> {
  return { segment: { from: BEGINNING, to: null }, mark };
}

function lowest(heads: ReadonlyMap<number, LogPosition<Difference>>): number {
  return Math.min(...[...heads.values()].map(({ mark }) => mark));
}

/**
 * Returns one row: the highest committed position, the server's incarnation, and as JSON the transactions that may have
 * written and have not ended, each with its process. The order matters: the position comes from the statement's
 * snapshot, the locks are those of a later moment. A transaction that drew a lower position before holds its lock from
 * then until it ends. VACUUM, ANALYZE and index builds hold locks of other kinds.
 */
function openWritersSql({ events, position }: TailShape, oid: string): string {
  return `select (select max(${position}) from ${events.quotedName} t), ${SERVER_INCARNATION},
  (select coalesce(json_agg(distinct l.virtualtransaction || ' ' || coalesce(l.pid, 0)), '[]') from pg_catalog.pg_locks l
   where l.locktype = 'relation' and l.mode = 'RowExclusiveLock' and l.granted and l.pid is distinct from pg_backend_pid()
     and l.database = (select d.oid from pg_catalog.pg_database d where d.datname = current_database())
     and l.relation in (select ${oid}::oid union all select p.relid from pg_partition_tree(${oid}::oid) p))`;
}
