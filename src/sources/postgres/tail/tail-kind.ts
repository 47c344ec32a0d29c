import { RelayError } from "../../../core/errors.ts";
import { quoteIdentifier, quoteTable } from "../../../postgres/identifiers.ts";
import { LIFE } from "../../../postgres/server-life.ts";
import type { Checkpoint, LogKind, LogPlace, PassRequest } from "../log/log-kind.ts";
import { checkPlaceSql } from "./check-place.sql.ts";
import { checkTableSql } from "./check-table.sql.ts";
import { readPlace, writePlace } from "./checkpoint-text.ts";
import { BEGINNING, type Difference } from "./difference.ts";
import { horizonKind } from "./horizon-kind.ts";
import { probeTailSql } from "./probe-tail.sql.ts";
import { TableLog, type TableLogOptions } from "./table-log.ts";
import { TailPass } from "./tail-pass.ts";
import { readTailShape, type TailShape } from "./tail-shape.ts";
import { stretchesBefore } from "./tail-stretch.ts";

interface TailOptions extends TableLogOptions {
  /** The column with the writing transaction; undefined: the one of type xid8. */
  readonly xidColumn?: string;
}

/** Lanes that begin together get the same start, so that they are read together. */
const START_MS = 5_000;

/**
 * An append-only table whose rows carry the number of the transaction that wrote them, read by the difference of
 * snapshots: no row is lost, however late its transaction commits, and nobody waits for anybody. A table that is said
 * to have no such column is read up to a horizon, which needs a lock now and then.
 */
export function tailKind(options: TailOptions): LogKind<Difference> {
  const hasNone = options.columns.xid === null && options.xidColumn === undefined;
  return hasNone ? horizonKind(options) : new TailKind(options);
}

class TailKind extends TableLog<TailOptions> implements LogKind<Difference> {
  #started: { readonly text: string; readonly atMs: number; readonly life: string } | null = null;

  protected async look(): Promise<TailShape> {
    const { database, reference, columns, xidColumn } = this.options;
    const xid = xidColumn ?? columns.xid;
    const shape = await readTailShape(database, reference, { names: this.columns, xid });
    const table = quoteTable(shape.events.name);
    if (shape.xid === null) {
      const cure = `alter table ${table} add column xid xid8 default pg_current_xact_id()`;
      const what = `${this.table} has no column of type xid8 that tells which transaction wrote a row: ${cure};`;
      const index = `create index concurrently on ${table} (xid, ${quoteIdentifier(shape.positionName)})`;
      const other =
        "If it cannot have one, say so (`xid=none` in OUTBOX_COLUMNS): then writers that stay open delay what is behind";
      throw new RelayError("COLUMN_MISSING", `${what} ${index}. ${other}.`);
    }
    const [row] = await this.rows("looking at the log", checkTableSql(shape));
    if (row?.[0] !== "t") return shape;
    const what = `${this.table} holds rows of transactions that this server has not reached: it was restored from a dump.`;
    const cure = `update ${table} set ${shape.xidName} = '3' where ${shape.xidName} >= pg_current_xact_id()`;
    throw new RelayError("LOG_LOST", `${what} Make them old (${cure}), then choose where to begin.`);
  }

  async start(): Promise<string> {
    const before = this.#started;
    if (before !== null && performance.now() - before.atMs < START_MS && (await this.#isLife(before.life))) {
      return before.text;
    }
    const { now, first, life } = await this.findStart();
    const place =
      first === null
        ? { segment: { from: now, to: null }, mark: 0 }
        : { segment: { from: BEGINNING, to: now }, mark: first - 1 };
    const text = writePlace(place, []);
    this.#started = { text, atMs: performance.now(), life };
    return text;
  }

  encode(place: LogPlace<Difference>, ahead: readonly LogPlace<Difference>[]): string {
    return writePlace(place, ahead);
  }

  async decode(checkpoint: string): Promise<Checkpoint<Difference>> {
    const { place, ahead } = readPlace(checkpoint, this.table, "difference");
    const [row] = await this.glance("checking a checkpoint", checkPlaceSql(place.segment));
    if (row?.[0] !== "t") {
      const { from, to } = place.segment;
      const what = `The checkpoint of ${this.options.spec.name} is ahead of the log ${this.table}: it is at snapshot`;
      const cause = "Another database was restored in its place, or an older copy of this one.";
      throw new RelayError("LOG_LOST", `${what} ${to ?? from}, the server at transaction ${row?.[1]}. ${cause}`);
    }
    const segment = { ...place.segment, life: row[2] ?? "" };
    return { place: { segment, mark: place.mark }, ahead: [...ahead].map((mark) => ({ segment, mark })) };
  }

  async open(request: PassRequest<Difference>): Promise<TailPass> {
    return new TailPass(await this.readerFor(request.laneCount), this.table, request);
  }

  async probe({ heads, laneCount }: PassRequest<Difference>): Promise<boolean> {
    const segments = [...heads.values()].map(({ segment }) => segment);
    if (segments.length === 0) return false;
    if (segments.some(({ to }) => to !== null)) return true;
    const snapshots = [...new Set(segments.map(({ from }) => from))];
    const text = probeTailSql(await this.scopeFor(laneCount), snapshots);
    return (await this.glance("looking for events", text)).length > 0;
  }

  async backlog({ heads, laneCount }: PassRequest<Difference>, max: number) {
    return await this.countRows(stretchesBefore(heads), laneCount, max);
  }

  async #isLife(life: string): Promise<boolean> {
    const [row] = await this.glance("looking at the server", `select ${LIFE}`);
    return row?.[0] === life;
  }
}
