import { isRelayError, RelayError } from "../../../core/errors.ts";
import { quoteIdentifier, quoteTable } from "../../../postgres/identifiers.ts";
import { statement } from "../../../postgres/transaction.ts";
import type { Checkpoint, LogKind, LogPlace, PassRequest } from "../log/log-kind.ts";
import { readPlace, writePlace } from "./checkpoint-text.ts";
import { BEGINNING, type Difference } from "./difference.ts";
import { HorizonPass } from "./horizon-pass.ts";
import { LIFE } from "./life.ts";
import { lockForHorizonSql } from "./lock-for-horizon.sql.ts";
import { mayLockSql } from "./may-lock.sql.ts";
import { TableLog, type TableLogOptions } from "./table-log.ts";
import { readTailShape, type TailShape } from "./tail-shape.ts";

export interface HorizonOptions extends TableLogOptions {
  /** How long open writers may keep the reading back before it is told. */
  readonly patienceMs?: number;
}

/** Writers that come while the lock is waited for wait as long as it. */
const LOCK_MS = 50;
/** Between two locks that were granted, and between two that were not. */
const PAUSE_MS = { granted: 100, refused: 500 };
const PATIENCE_MS = 10_000;
/** For counting: whatever is there. */
const NO_HORIZON = "9223372036854775807";

/**
 * An append-only table that cannot have a column for the writing transaction. Positions are given out before they are
 * committed, so nobody can tell from outside which gaps will still be filled; but while a SHARE lock is held nobody has
 * an uncommitted row, and everything up to the highest position is final. So the lock is taken for the blink in which
 * that position is read, and then the rows up to there are read without any.
 *
 * What it costs: writers stop for that blink (and up to 50 ms more while the lock waits for an older writer), at most
 * ten times a second and only while there is something new; a transaction that wrote and stays open delays everything
 * behind it; the role needs a right that allows the lock. The position must be given out by the insert itself: numbers
 * that an application draws beforehand can turn up below the horizon.
 */
export function horizonKind(options: HorizonOptions): LogKind<Difference> {
  return new HorizonKind(options);
}

class HorizonKind extends TableLog<HorizonOptions> implements LogKind<Difference> {
  readonly readsInOrder = true;
  /** Everything up to here is final. */
  #horizon = 0;
  #nextLookMs = Number.NEGATIVE_INFINITY;
  #busySinceMs: number | null = null;

  protected async look(): Promise<TailShape> {
    const { database, reference } = this.options;
    const shape = await readTailShape(database, reference, { names: this.columns, xid: null });
    const table = quoteTable(shape.events.name);
    if (!shape.hasPositionIndex) {
      const cure = `create index concurrently on ${table} (${quoteIdentifier(shape.positionName)})`;
      throw new RelayError("COLUMN_MISSING", `${this.table} has no index on its position: ${cure}.`);
    }
    const [row] = await this.rows("looking at the log", mayLockSql(table));
    if (row?.[0] === "t") return shape;
    const what = `The role ${row?.[1] ?? database.role} may not lock ${table} for a moment: it lacks UPDATE on it`;
    throw new RelayError("GRANT_MISSING", `${what} (from PostgreSQL 17 on MAINTAIN is enough).`);
  }

  async start(): Promise<string> {
    const { first } = await this.findStart();
    if (first !== null) return writePlace(placeAt(first - 1), []);
    this.#nextLookMs = Number.NEGATIVE_INFINITY;
    const horizon = await this.#look();
    if (horizon === null) throw this.#busy("to begin now");
    return writePlace(placeAt(horizon), []);
  }

  encode(place: LogPlace<Difference>, ahead: readonly LogPlace<Difference>[]): string {
    return writePlace(place, ahead);
  }

  async decode(checkpoint: string): Promise<Checkpoint<Difference>> {
    const { place, ahead } = readPlace(checkpoint, this.table, "horizon");
    const { shape } = await this.scopeFor(1);
    const text = `select max(${shape.position}), ${LIFE} from ${shape.events.quotedName} t`;
    const [row] = await this.rows("checking a checkpoint", text);
    if (row?.[0] != null && Number(row[0]) < place.mark) {
      const what = `The checkpoint of ${this.options.spec.name} is ahead of the log ${this.table}: it is at position`;
      const cause = "Another table stands in its place, or an older copy of it.";
      throw new RelayError("LOG_LOST", `${what} ${place.mark}, the table ends at ${row[0]}. ${cause}`);
    }
    const segment = { from: BEGINNING, to: null, life: row?.[1] ?? "" };
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

  /** The highest final position; at most what is known already when there is nothing new, or nobody may look yet. */
  async #horizonBehind(after: number): Promise<number> {
    if (after < this.#horizon) return this.#horizon;
    if (performance.now() < this.#nextLookMs || !(await this.#hasRowsBehind(after))) return this.#horizon;
    const horizon = await this.#look();
    if (horizon !== null) return horizon;
    if (performance.now() - (this.#busySinceMs ?? 0) > (this.options.patienceMs ?? PATIENCE_MS)) throw this.#busy();
    return this.#horizon;
  }

  /** Null when a writer is in the way. */
  async #look(): Promise<number | null> {
    const { database } = this.options;
    const { shape } = await this.scopeFor(1);
    const settings = {
      context: database.errorContext("looking for what is final", this.table),
      statementTimeoutMs: database.timeouts.statementMs,
      lockTimeoutMs: LOCK_MS,
    };
    try {
      const [row] = await statement(database.pool, settings, lockForHorizonSql(shape));
      this.#horizon = Math.max(this.#horizon, Number(row?.[0] ?? 0));
      this.#busySinceMs = null;
      this.#nextLookMs = performance.now() + PAUSE_MS.granted;
      return this.#horizon;
    } catch (error) {
      if (!isRelayError(error, "DATABASE_BUSY")) throw error;
      this.#busySinceMs ??= performance.now();
      this.#nextLookMs = performance.now() + PAUSE_MS.refused;
      return null;
    }
  }

  async #hasRowsBehind(after: number): Promise<boolean> {
    const { shape } = await this.scopeFor(1);
    const { events, position } = shape;
    const text = `select 1 from ${events.quotedName} t where ${position} > ${after} order by ${position} limit 1`;
    return (await this.glance("looking for events", text)).length > 0;
  }

  #busy(what = "to go on"): RelayError {
    const seconds = Math.round((performance.now() - (this.#busySinceMs ?? performance.now())) / 1_000);
    const cause = `a transaction that wrote to it has been open for ${seconds} s or more`;
    const cure = "End it (pg_stat_activity shows xact_start), or give the table a column xid8, which needs no lock";
    return new RelayError("DATABASE_BUSY", `${this.table} cannot be locked for a moment ${what}: ${cause}. ${cure}.`);
  }
}

function placeAt(mark: number): LogPlace<Difference> {
  return { segment: { from: BEGINNING, to: null }, mark };
}

function lowest(heads: ReadonlyMap<number, LogPlace<Difference>>): number {
  return Math.min(...[...heads.values()].map(({ mark }) => mark));
}
