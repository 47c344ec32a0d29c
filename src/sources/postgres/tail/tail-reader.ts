import { RelayError } from "../../../core/errors.ts";
import type { ClaimedEvent } from "../../../ports/queue-store.ts";
import { displayTable, quoteArray } from "../../../postgres/identifiers.ts";
import type { Database } from "../../../postgres/pool.ts";
import { SERVER_INCARNATION } from "../../../postgres/server-incarnation.ts";
import type { Row } from "../../../postgres/session.ts";
import { statements } from "../../../postgres/transaction.ts";
import { COLUMN, leftOutColumnsSql } from "../event-columns.ts";
import { EventReader, type LeftOut } from "../event-reader.ts";
import type { LogPosition, LogRow } from "../log/log-kind.ts";
import { rowsThatFit } from "../payload-loader.ts";
import { type Difference, keyOf } from "./difference.ts";
import { gatherSql, surveyLargeSql, walkEndSql, walkSql } from "./tail-reader.sql.ts";
import { columnsSql, filterConditions, fromSql, isBeginning, type TailScope, tableSql } from "./tail-scope.ts";
import type { Stretch } from "./tail-stretch.ts";
import { type Large, WHOLE } from "./walked.ts";

/**
 * A difference of up to this many rows is looked up completely for every page, which costs microseconds per row. A
 * larger one is walked along the positions, which costs less per row but more to begin with.
 */
const GATHER_MAX = 2_000;
/** Rows that one statement scans at most, whether they belong to the pipeline or not: it must end in time. */
const STEP_MAX = 50_000;
/** Differences whose beginning is remembered, so that the next pass does not search for it again. */
const LARGE_MAX = 16;

/**
 * Whatever the statistics say: plans that return the first rows at once and stop when there are enough. Parallel
 * workers are off, since starting them alone takes milliseconds.
 */
export const TAIL_SETTINGS = {
  plan_cache_mode: "force_custom_plan",
  enable_seqscan: "off",
  enable_bitmapscan: "off",
  max_parallel_workers_per_gather: "0",
  jit: "off",
};

const INCARNATION_AT = COLUMN.order + 1;
const SNAPSHOT_AT = COLUMN.order + 2;
const SIZE_AT = COLUMN.order + 3;

interface StretchPage {
  readonly rows: readonly LogRow<Difference>[];
  /** The difference that was read, with both snapshots. */
  readonly difference: Difference & { readonly to: string };
  /** The new position of the stretch's lanes. */
  readonly place: LogPosition<Difference>;
  readonly incarnation: string;
}

const NOWHERE: Difference = { from: "", to: null };

/** Reads pages of differences, each in its own short transaction. It keeps nothing open. */
export class TailReader {
  readonly #database: Database;
  readonly #scope: TailScope;
  readonly #events: EventReader;
  readonly #large: Map<string, Large>;

  /** `large` outlives the reader: what is known of a fixed difference stays true. */
  constructor(database: Database, scope: TailScope, headersMax: number, large: Map<string, Large> = new Map()) {
    const { payloadBytesMax, shape } = scope;
    this.#database = database;
    this.#scope = scope;
    this.#events = new EventReader({ payloadBytesMax, headersMax, isBytea: shape.events.payload.kind === "bytea" });
    this.#large = large;
  }

  async read(stretch: Stretch, rows: number, bytes: number): Promise<StretchPage> {
    const { difference } = stretch;
    if (isBeginning(difference) || this.#large.has(keyOf(difference))) return await this.#walk(stretch, rows, bytes);
    const found = await this.#rows(gatherSql(this.#scope, stretch, rows, GATHER_MAX));
    const look = found[0] ?? [];
    const incarnation = look[INCARNATION_AT] ?? "";
    const fixed = { from: difference.from, to: difference.to ?? look[SNAPSHOT_AT] ?? "", incarnation };
    if (Number(look[SIZE_AT]) > GATHER_MAX) return await this.#walk({ ...stretch, difference: fixed }, rows, bytes);
    const listed = found.filter((row) => row[COLUMN.order] !== null);
    listed.sort((left, right) => Number(left[COLUMN.order]) - Number(right[COLUMN.order]));
    const shown = await this.#show(listed, fixed, rows, bytes);
    const isWhole = listed.length < rows && shown.length === listed.length;
    const place = isWhole ? behind(fixed) : { segment: fixed, mark: shown.at(-1)!.mark };
    return { rows: shown, difference: fixed, place, incarnation };
  }

  /** Reads events by id. Events over the payload's limit are returned with their fault, as in a page. */
  async find(ids: readonly string[]): Promise<readonly ClaimedEvent[]> {
    const { events } = this.#scope.shape;
    const rows = await this.#rows(
      `select ${columnsSql(this.#scope)} from ${fromSql(this.#scope, events.quotedName)}
       where ${events.id} = any(${quoteArray(ids)}::${events.idType}[])`,
    );
    return (await this.#show(rows, NOWHERE, rows.length, Number.POSITIVE_INFINITY)).map(({ event }) => event);
  }

  async #walk(asked: Stretch, rows: number, bytes: number): Promise<StretchPage> {
    const { difference } = asked;
    const fixed = { ...difference, to: difference.to ?? "" };
    const large = isBeginning(difference) ? WHOLE : await this.#survey(fixed);
    const hasNone = large.before === null && large.ended.length === 0;
    if (hasNone) return { rows: [], difference: fixed, place: behind(fixed), incarnation: fixed.incarnation ?? "" };
    const walk = walkSql(this.#scope, asked, large, rows, STEP_MAX);
    const [server = [], listed = []] = await this.#results([`select ${SERVER_INCARNATION}`, walk]);
    const incarnation = server[0]?.[0] ?? "";
    const segment = { ...fixed, incarnation };
    const shown = await this.#show(listed, segment, rows, bytes);
    const isCut = listed.length === rows || shown.length < listed.length;
    const place = isCut ? { segment, mark: shown.at(-1)!.mark } : await this.#stepEnd(asked, segment, large);
    return { rows: shown, difference: segment, place, incarnation };
  }

  /** The position after a step that found fewer rows than were asked for. */
  async #stepEnd(
    stretch: Stretch,
    segment: Difference & { readonly to: string },
    large: Large,
  ): Promise<LogPosition<Difference>> {
    if (filterConditions(this.#scope, stretch.lanes).length === 0) return behind(segment);
    const [row] = await this.#rows(walkEndSql(this.#scope, stretch, large, STEP_MAX));
    return Number(row?.[1]) < STEP_MAX ? behind(segment) : { segment, mark: this.#markOf(row?.[0]) };
  }

  async #survey(difference: Difference & { readonly to: string }): Promise<Large> {
    const key = keyOf(difference);
    const known = this.#large.get(key);
    if (known) return known;
    const rows = await this.#rows(surveyLargeSql(this.#scope, difference));
    const later = rows.find(([xid]) => xid == null)?.[1];
    const before = later == null ? null : Math.max(0, Number(later) - 1);
    const ended = rows.flatMap(([xid, first]) => (xid == null || first == null ? [] : [BigInt(xid)]));
    const large = { before, ended };
    this.#large.set(key, large);
    for (const old of this.#large.keys()) if (this.#large.size > LARGE_MAX) this.#large.delete(old);
    return large;
  }

  async #show(
    listed: readonly Row[],
    segment: Difference,
    rowsMax: number,
    bytesMax: number,
  ): Promise<readonly LogRow<Difference>[]> {
    const page = listed.slice(0, rowsThatFit(listed, rowsMax, bytesMax, this.#events));
    const large = page.filter((row) => this.#events.bytesToLoad(row) > 0).map((row) => row[COLUMN.order] ?? "");
    const loaded = large.length === 0 ? null : await this.#load(large);
    return page.map((row) => {
      const body = loaded?.get(row[COLUMN.order] ?? "") ?? null;
      return { segment, mark: this.#markOf(row[COLUMN.order]), event: this.#events.read(row, body, null) };
    });
  }

  async #load(positions: readonly string[]): Promise<ReadonlyMap<string, LeftOut>> {
    const { payloadBytesMax, shape } = this.#scope;
    const { position, events } = shape;
    const rows = await this.#rows(
      `select ${position}, ${leftOutColumnsSql(events, payloadBytesMax)} from ${tableSql(this.#scope)}
       where ${position} = any(${quoteArray(positions)}::bigint[])`,
    );
    const loaded = new Map(rows.map((row) => [row[0] ?? "", { payload: row[1] ?? null, headers: row[2] ?? null }]));
    const gone = positions.find((it) => !loaded.has(it));
    if (gone === undefined) return loaded;
    const what = `Row ${gone} of ${displayTable(events.name)} was deleted while it was being read; the next pass skips it.`;
    throw new RelayError("DATABASE_BUSY", what);
  }

  #markOf(position: string | null | undefined): number {
    const mark = Number(position);
    if (Number.isSafeInteger(mark) && mark > 0) return mark;
    const { events, positionName } = this.#scope.shape;
    const what = `Column ${positionName} of ${displayTable(events.name)} holds ${position}; positions are 1 to 2^53`;
    throw new RelayError("COLUMN_MISTYPED", what);
  }

  async #rows(text: string): Promise<readonly Row[]> {
    return (await this.#results([text]))[0] ?? [];
  }

  async #results(texts: readonly string[]): Promise<readonly (readonly Row[])[]> {
    const settings = {
      context: this.#database.errorContext("reading the log", displayTable(this.#scope.shape.events.name)),
      statementTimeoutMs: this.#database.timeouts.readMs,
      readOnly: true,
      settings: TAIL_SETTINGS,
    };
    return await statements(this.#database.pool, settings, texts);
  }
}

/** The position after the whole difference: next come the rows that the newer snapshot did not see. */
function behind({ to, incarnation }: Difference & { readonly to: string }): LogPosition<Difference> {
  return { segment: { from: to, to: null, ...(incarnation === undefined ? {} : { incarnation }) }, mark: 0 };
}
