import { RelayError } from "../../../core/errors.ts";
import type { ClaimedEvent, PipelineSpec, SourceWarning, TypeRule } from "../../../ports/queue-store.ts";
import type { ColumnNames } from "../../../postgres/column-names.ts";
import { displayTable } from "../../../postgres/identifiers.ts";
import type { Database } from "../../../postgres/pool.ts";
import { rowSecurityWarnings } from "../../../postgres/row-security.ts";
import type { Row } from "../../../postgres/session.ts";
import { glance, statement } from "../../../postgres/transaction.ts";
import { keptColumns } from "../kept-columns.ts";
import type { LogBacklog } from "../log/log-kind.ts";
import { referenceName, type TableReference } from "../table-discovery.ts";
import { backlogTailSql, copySql, newestUnroutedSql, startSql } from "./table-log.sql.ts";
import { TAIL_SETTINGS, TailReader } from "./tail-reader.ts";
import type { TailScope } from "./tail-scope.ts";
import type { TailShape } from "./tail-shape.ts";
import type { Stretch } from "./tail-stretch.ts";

/** Where a lane begins that was never read. */
export type LogStart = "beginning" | "now" | { readonly at: Date | string };

/** Options shared by both ways of reading a table. */
export interface TableLogOptions {
  readonly database: Database;
  readonly reference: TableReference;
  readonly columns: ColumnNames;
  readonly spec: PipelineSpec;
  readonly start: LogStart;
  /** Deletes old rows that no pipeline needs. Absent: the application owns the table, so nothing is deleted. */
  readonly prune?: (olderThanMs: number, rows: number) => Promise<number>;
}

/** A count for people and alerts: it must not slow the delivery down. */
const BACKLOG_MS = 2_000;

/** What both ways of reading an append-only table share. */
export abstract class TableLog<Options extends TableLogOptions> {
  protected readonly options: Options;
  readonly #large: ConstructorParameters<typeof TailReader>[3] = new Map();
  #shape: TailShape | null = null;

  constructor(options: Options) {
    this.options = options;
  }

  protected abstract look(): Promise<TailShape>;

  async prepare(): Promise<void> {
    this.#shape = await this.look();
  }

  async warnings(): Promise<readonly SourceWarning[]> {
    const { shape } = await this.scopeFor(1);
    return await rowSecurityWarnings(this.options.database, shape.events.name, "log");
  }

  async unrouted(rules: readonly (readonly TypeRule[])[]) {
    const { shape } = await this.scopeFor(1);
    const rows = await this.rows("searching for unrouted events", newestUnroutedSql(shape, rules));
    return rows.map((row) => ({ type: row[0] ?? "", count: Number(row[1]) }));
  }

  async find(ids: readonly string[], laneCount: number): Promise<readonly ClaimedEvent[]> {
    return await (await this.readerFor(laneCount)).find(ids);
  }

  orderOf({ mark }: { readonly mark: number }): bigint {
    return BigInt(mark);
  }

  selectSql(rows: readonly { readonly mark: number }[]): string {
    if (this.#shape === null) throw new RelayError("TABLE_MISSING", `${this.table} has not been read yet`);
    return copySql(
      this.#shape,
      rows.map(({ mark }) => mark),
    );
  }

  async prune(olderThanMs: number, rows: number): Promise<number> {
    return (await this.options.prune?.(olderThanMs, rows)) ?? 0;
  }

  /** The configured column names, plus those that the table was read by so far. */
  protected get columns(): ColumnNames {
    return keptColumns(this.options.columns, this.#shape?.events);
  }

  protected get table(): string {
    return this.#shape === null ? referenceName(this.options.reference) : displayTable(this.#shape.events.name);
  }

  protected async scopeFor(laneCount: number): Promise<TailScope> {
    if (this.#shape === null) await this.prepare();
    const { types, payloadBytesMax } = this.options.spec;
    return { shape: this.#shape!, types, payloadBytesMax, laneCount };
  }

  protected async readerFor(laneCount: number): Promise<TailReader> {
    const { database, spec } = this.options;
    return new TailReader(database, await this.scopeFor(laneCount), spec.headersMax, this.#large);
  }

  /** The current snapshot, and the position that the configured start names; null when it names none. */
  protected async findStart(): Promise<{
    readonly now: string;
    readonly first: number | null;
    readonly incarnation: string;
  }> {
    const { start } = this.options;
    const since = typeof start === "string" ? null : new Date(start.at).toISOString();
    const [row] = await this.rows("finding where to begin", startSql(await this.scopeFor(1), since));
    const first = start === "beginning" ? 1 : row?.[1] == null ? null : Math.max(1, Number(row[1]));
    return { now: row?.[0] ?? "", first, incarnation: row?.[2] ?? "" };
  }

  protected async countRows(stretches: readonly Stretch[], laneCount: number, max: number): Promise<LogBacklog> {
    if (stretches.length === 0) return { pending: 0, isEstimate: false, oldestAgeMs: null };
    const text = backlogTailSql(await this.scopeFor(laneCount), stretches, max);
    const [row] = await this.rows("counting pending events", text, BACKLOG_MS);
    const pending = Number(row?.[0]);
    const oldestAgeMs = row?.[1] == null ? null : Math.max(0, Number(row[1]));
    return { pending, isEstimate: pending > max, oldestAgeMs };
  }

  protected async glance(doing: string, text: string): Promise<readonly Row[]> {
    const { database } = this.options;
    return await glance(database.pool, database.errorContext(doing, this.table), database.timeouts.readMs, text);
  }

  protected async rows(doing: string, text: string, timeoutMs = this.options.database.timeouts.readMs) {
    const { database } = this.options;
    const settings = {
      context: database.errorContext(doing, this.table),
      statementTimeoutMs: timeoutMs,
      readOnly: true,
      settings: TAIL_SETTINGS,
    };
    return await statement(database.pool, settings, text);
  }
}
