import { RelayError } from "../../../core/errors.ts";
import { createIndexSql } from "../../../postgres/create-index.ts";
import { quoteIdentifier, quoteTable } from "../../../postgres/identifiers.ts";
import { SERVER_INCARNATION } from "../../../postgres/server-incarnation.ts";
import type { Checkpoint, LogKind, LogPosition, PassRequest } from "../log/log-kind.ts";
import { readPosition, writePosition } from "./checkpoint-text.ts";
import { BEGINNING, type Difference } from "./difference.ts";
import { horizonKind } from "./horizon-kind.ts";
import { TableLog, type TableLogOptions } from "./table-log.ts";
import { checkPositionSql, checkTableSql, probeTailSql } from "./tail-kind.sql.ts";
import { TailPass } from "./tail-pass.ts";
import { readTailShape, type TailShape } from "./tail-shape.ts";
import { stretchesBefore } from "./tail-stretch.ts";

interface TailOptions extends TableLogOptions {
  /** The column with the writing transaction; undefined: the column of type xid8. */
  readonly xidColumn?: string;
}

/** Lanes that begin within this time share a start, so that they are read together. */
const START_MS = 5_000;

/**
 * An append-only table whose rows carry the id of the transaction that wrote them, read by differences of snapshots. No
 * row is lost, however late its transaction commits, and neither writers nor readers wait. A table configured without
 * such a column is read up to a horizon, which is delayed by open writers.
 */
export function tailKind(options: TailOptions): LogKind<Difference> {
  const hasNone = options.columns.xid === null && options.xidColumn === undefined;
  return hasNone ? horizonKind(options) : new TailKind(options);
}

class TailKind extends TableLog<TailOptions> implements LogKind<Difference> {
  #started: { readonly text: string; readonly atMs: number; readonly incarnation: string } | null = null;

  protected async look(): Promise<TailShape> {
    const { database, reference, columns, xidColumn } = this.options;
    const xid = xidColumn ?? columns.xid;
    const shape = await readTailShape(database, reference, { names: this.columns, xid });
    const table = quoteTable(shape.events.name);
    if (shape.xid === null) {
      const cure = `alter table ${table} add column xid xid8 default pg_current_xact_id()`;
      const what = `${this.table} has no column of type xid8 for the transaction that wrote a row. Run: ${cure};`;
      const columns = `xid, ${quoteIdentifier(shape.positionName)}`;
      const index = createIndexSql({ table: shape.events.name, columns, isPartitioned: shape.isPartitioned });
      const other =
        "If it cannot have one, set `xid=none` in OUTBOX_COLUMNS: then a writer that stays open delays the events after it";
      throw new RelayError("COLUMN_MISSING", `${what} ${index} ${other}.`);
    }
    const [row] = await this.rows("reading the log", checkTableSql(shape));
    if (row?.[0] !== "t") return shape;
    const what = `${this.table} holds rows of transactions that this server has not reached: it was restored from a dump.`;
    const cure = `update ${table} set ${shape.xidName} = '3' where ${shape.xidName} >= pg_current_xact_id()`;
    throw new RelayError("LOG_LOST", `${what} Mark them as old (${cure}), then reset the checkpoint.`);
  }

  async start(): Promise<string> {
    const before = this.#started;
    if (
      before !== null &&
      performance.now() - before.atMs < START_MS &&
      (await this.#isIncarnation(before.incarnation))
    ) {
      return before.text;
    }
    const { now, first, incarnation } = await this.findStart();
    const place =
      first === null
        ? { segment: { from: now, to: null }, mark: 0 }
        : { segment: { from: BEGINNING, to: now }, mark: first - 1 };
    const text = writePosition(place, []);
    this.#started = { text, atMs: performance.now(), incarnation };
    return text;
  }

  encode(place: LogPosition<Difference>, ahead: readonly LogPosition<Difference>[]): string {
    return writePosition(place, ahead);
  }

  async decode(checkpoint: string): Promise<Checkpoint<Difference>> {
    const { place, ahead } = readPosition(checkpoint, this.table, "difference");
    const [row] = await this.glance("checking a checkpoint", checkPositionSql(place.segment));
    if (row?.[0] !== "t") {
      const { from, to } = place.segment;
      const what = `The checkpoint of ${this.options.spec.name} is ahead of the log ${this.table}: it is at snapshot`;
      const cause = "Another database, or an older copy of this one, was restored.";
      throw new RelayError("LOG_LOST", `${what} ${to ?? from}, the server at transaction ${row?.[1]}. ${cause}`);
    }
    const segment = { ...place.segment, incarnation: row[2] ?? "" };
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
    return (await this.glance("searching for events", text)).length > 0;
  }

  async backlog({ heads, laneCount }: PassRequest<Difference>, max: number) {
    return await this.countRows(stretchesBefore(heads), laneCount, max);
  }

  async #isIncarnation(incarnation: string): Promise<boolean> {
    const [row] = await this.glance("reading the server", `select ${SERVER_INCARNATION}`);
    return row?.[0] === incarnation;
  }
}
