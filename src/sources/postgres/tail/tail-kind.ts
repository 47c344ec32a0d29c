import { RelayError } from "../../../core/errors.ts";
import type { ClaimedEvent, PipelineSpec, TypeRule } from "../../../ports/queue-store.ts";
import type { ColumnNames } from "../../../postgres/column-names.ts";
import { displayTable, quoteTable } from "../../../postgres/identifiers.ts";
import type { Database } from "../../../postgres/pool.ts";
import type { Row } from "../../../postgres/session.ts";
import { glance, statement } from "../../../postgres/transaction.ts";
import type { Checkpoint, LogBacklog, LogKind, LogPlace, LogRow, PassRequest } from "../log/log-kind.ts";
import { referenceName, type TableReference } from "../table-discovery.ts";
import { backlogTailSql } from "./backlog-tail.sql.ts";
import { checkPlaceSql } from "./check-place.sql.ts";
import { checkTableSql } from "./check-table.sql.ts";
import { readPlace, writePlace } from "./checkpoint-text.ts";
import { copySql } from "./copy.sql.ts";
import { BEGINNING, type Difference } from "./difference.ts";
import { probeTailSql } from "./probe-tail.sql.ts";
import { startSql } from "./start.sql.ts";
import { TailPass } from "./tail-pass.ts";
import { TAIL_SETTINGS, TailReader } from "./tail-reader.ts";
import type { TailScope } from "./tail-scope.ts";
import { readTailShape } from "./tail-shape.ts";
import { untakenSql } from "./untaken.sql.ts";

/** Where a lane begins that was never read. */
export type LogStart = "beginning" | "now" | { readonly at: Date | string };

export interface TailOptions {
  readonly database: Database;
  readonly reference: TableReference;
  readonly columns: ColumnNames;
  /** The column with the writing transaction; undefined: the one of type xid8. */
  readonly xidColumn?: string;
  readonly spec: PipelineSpec;
  readonly start: LogStart;
  /** Deletes what is older and no pipeline needs. Absent: the table is somebody else's, nothing is deleted. */
  readonly prune?: (olderThanMs: number, rows: number) => Promise<number>;
}

/** Whoever asks is a person or an alarm; the delivery must not notice. */
const BACKLOG_MS = 2_000;
/** Lanes that begin together get the same start, so that they are read together. */
const START_MS = 5_000;

/**
 * An append-only table whose rows carry the number of the transaction that wrote them, read by the difference of
 * snapshots: no row is lost, however late its transaction commits, and nobody waits for anybody.
 */
export function tailKind(options: TailOptions): LogKind<Difference> {
  return new TailKind(options);
}

class TailKind implements LogKind<Difference> {
  readonly #options: TailOptions;
  readonly #large: ConstructorParameters<typeof TailReader>[3] = new Map();
  #scope: Omit<TailScope, "laneCount"> | null = null;
  #started: { readonly text: string; readonly atMs: number } | null = null;

  constructor(options: TailOptions) {
    this.#options = options;
  }

  async prepare(): Promise<void> {
    const { database, reference, columns, spec, xidColumn } = this.#options;
    const shape = await readTailShape(database, reference, { names: columns, xid: xidColumn });
    if (shape.xid === null) {
      const table = quoteTable(shape.events.name);
      const cure = `alter table ${table} add column xid xid8 default pg_current_xact_id()`;
      const what = `${this.#table} has no column of type xid8 that tells which transaction wrote a row: ${cure};`;
      throw new RelayError("COLUMN_MISSING", `${what} create index concurrently on ${table} (xid, position column).`);
    }
    const { types, payloadBytesMax } = spec;
    this.#scope = { shape, types, payloadBytesMax };
    const [row] = await this.#rows("looking at the log", checkTableSql(await this.#scopeFor(1)));
    if (row?.[0] !== "t") return;
    const what = `${this.#table} holds rows of transactions that this server has not reached: it was restored from a dump.`;
    const cure = `update .. set ${shape.xidName} = '3' where ${shape.xidName} >= pg_current_xact_id()`;
    throw new RelayError("LOG_LOST", `${what} Make them old (${cure}), then choose where to begin.`);
  }

  async start(): Promise<string> {
    const before = this.#started;
    if (before !== null && performance.now() - before.atMs < START_MS) return before.text;
    const { start } = this.#options;
    const since = typeof start === "string" ? null : new Date(start.at).toISOString();
    const [row] = await this.#rows("finding where to begin", startSql(await this.#scopeFor(1), since));
    const now = row?.[0] ?? "";
    const first = start === "beginning" ? 1 : row?.[1] == null ? null : Number(row[1]);
    const place =
      first === null
        ? { segment: { from: now, to: null }, mark: 0 }
        : { segment: { from: BEGINNING, to: now }, mark: Math.max(0, first - 1) };
    const text = writePlace(place, []);
    this.#started = { text, atMs: performance.now() };
    return text;
  }

  encode(place: LogPlace<Difference>, ahead: readonly LogPlace<Difference>[]): string {
    return writePlace(place, ahead);
  }

  async decode(checkpoint: string): Promise<Checkpoint<Difference>> {
    const { place, ahead } = readPlace(checkpoint, this.#table);
    const { database } = this.#options;
    const context = database.errorContext("checking a checkpoint", this.#table);
    const [row] = await glance(database.pool, context, database.timeouts.statementMs, checkPlaceSql(place.segment));
    if (row?.[0] !== "t") {
      const { from, to } = place.segment;
      const what = `The checkpoint of ${this.#options.spec.name} is ahead of the log ${this.#table}: it is at snapshot`;
      const cause = "Another database was restored in its place, or an older copy of this one.";
      throw new RelayError("LOG_LOST", `${what} ${to ?? from}, the server at transaction ${row?.[1]}. ${cause}`);
    }
    const segment = { ...place.segment, life: row[2] ?? "", ...(ahead.size > 0 ? { owed: new Set(ahead) } : {}) };
    return { place: { segment, mark: place.mark }, isAhead: ({ mark }) => ahead.has(mark) };
  }

  async open(request: PassRequest<Difference>): Promise<TailPass> {
    return new TailPass(await this.#readerFor(request.laneCount), this.#table, request);
  }

  async probe({ heads, laneCount }: PassRequest<Difference>): Promise<boolean> {
    const segments = [...heads.values()].map(({ segment }) => segment);
    if (segments.length === 0) return false;
    if (segments.some(({ to }) => to !== null)) return true;
    const scope = await this.#scopeFor(laneCount);
    const { database } = this.#options;
    const text = probeTailSql(scope, [...new Set(segments.map(({ from }) => from))]);
    const context = database.errorContext("looking for events", this.#table);
    return (await glance(database.pool, context, database.timeouts.readMs, text)).length > 0;
  }

  async backlog({ heads, laneCount }: PassRequest<Difference>, max: number): Promise<LogBacklog> {
    if (heads.size === 0) return { pending: 0, isEstimate: false, oldestAgeMs: null };
    const scope = await this.#scopeFor(laneCount);
    const [row] = await this.#rows("counting what waits", backlogTailSql(scope, heads, max), BACKLOG_MS);
    const pending = Number(row?.[0]);
    const oldestAgeMs = row?.[1] == null ? null : Math.max(0, Number(row[1]));
    return { pending, isEstimate: pending > max, oldestAgeMs };
  }

  async untaken(rules: readonly (readonly TypeRule[])[]) {
    const { shape } = await this.#scopeFor(1);
    const rows = await this.#rows("looking for unrouted events", untakenSql(shape, rules));
    return rows.map((row) => ({ type: row[0] ?? "", count: Number(row[1]) }));
  }

  async find(ids: readonly string[], laneCount: number): Promise<readonly ClaimedEvent[]> {
    return await (await this.#readerFor(laneCount)).find(ids);
  }

  orderOf({ mark }: LogPlace<Difference>): bigint {
    return BigInt(mark);
  }

  selectSql(rows: readonly LogRow<Difference>[]): string {
    if (this.#scope === null) throw new RelayError("TABLE_MISSING", `${this.#table} was not looked at yet`);
    return copySql(
      this.#scope.shape,
      rows.map(({ mark }) => mark),
    );
  }

  async prune(olderThanMs: number, rows: number): Promise<number> {
    return (await this.#options.prune?.(olderThanMs, rows)) ?? 0;
  }

  get #table(): string {
    return this.#scope === null ? referenceName(this.#options.reference) : displayTable(this.#scope.shape.events.name);
  }

  async #readerFor(laneCount: number): Promise<TailReader> {
    const { database, spec } = this.#options;
    return new TailReader(database, await this.#scopeFor(laneCount), spec.headersMax, this.#large);
  }

  async #scopeFor(laneCount: number): Promise<TailScope> {
    if (this.#scope === null) await this.prepare();
    return { ...this.#scope!, laneCount };
  }

  async #rows(
    doing: string,
    text: string,
    timeoutMs = this.#options.database.timeouts.readMs,
  ): Promise<readonly Row[]> {
    const { database } = this.#options;
    const settings = {
      context: database.errorContext(doing, this.#table),
      statementTimeoutMs: timeoutMs,
      readOnly: true,
      settings: TAIL_SETTINGS,
    };
    return await statement(database.pool, settings, text);
  }
}
