import { RelayError } from "../../core/errors.ts";
import type { ClaimedEvent, LaneState, Run } from "../../ports/queue-store.ts";
import { type ErrorContext, translateError } from "../../postgres/errors.ts";
import type { Gate } from "../../postgres/gate.ts";
import { displayTable } from "../../postgres/identifiers.ts";
import type { Row } from "../../postgres/session.ts";
import type { OpenTransaction } from "../../postgres/transaction.ts";
import { COLUMN } from "./event-columns.ts";
import type { EventReader } from "./event-reader.ts";
import { readEvents, rowsThatFit } from "./payload-loader.ts";
import type { TableShape } from "./table-shape.ts";
import { type OrderOf, sortTies, wholeGroups } from "./ties.ts";

interface RunParts {
  readonly shape: TableShape;
  readonly reader: EventReader;
  readonly lanes: readonly LaneState[];
  readonly transaction: OpenTransaction;
  /** The statement that the cursor runs over. */
  readonly text: string;
  readonly context: ErrorContext;
  /** Where the others wait for a connection. */
  readonly gate: Gate;
  /** Lets the next run have the connection. */
  readonly leave: () => void;
}

/** Rows that are fetched at a time, however small they may be: each of them can be as large as a row in a page may be. */
const FETCH_ROWS_MAX = 500;

/**
 * A cursor in one snapshot. DECLARE and FETCH rather than the protocol's portals: only a declared cursor is planned for
 * its first rows, each FETCH has a timeout of its own, and large payloads can be loaded between two of them.
 */
export class PostgresRun implements Run {
  readonly lanes: readonly LaneState[];
  readonly #parts: RunParts;
  readonly #orderOf: OrderOf;
  /** Complete and sorted, not gone out yet. */
  #ready: Row[] = [];
  /** Read in order; whether the last group goes on is not known yet. */
  #rest: Row[] = [];
  #declared = false;
  #exhausted = false;
  #ended = false;
  /** The page under way: the connection takes one statement at a time. */
  #reading: Promise<unknown> = Promise.resolve();

  constructor(parts: RunParts) {
    this.#parts = parts;
    this.lanes = parts.lanes;
    const { isCreatedAt } = parts.shape.order;
    this.#orderOf = isCreatedAt ? (row) => row[COLUMN.createdAt] : (row) => row[COLUMN.order];
  }

  get isAwaited(): boolean {
    return this.#parts.gate.isAwaited;
  }

  async next(rows: number, bytes: number): Promise<readonly ClaimedEvent[]> {
    if (this.#ended) return [];
    const page = this.#next(rows, bytes);
    this.#reading = page.catch(() => {});
    return await page;
  }

  async end(): Promise<void> {
    if (this.#ended) return;
    this.#ended = true;
    await this.#reading;
    this.#ready = [];
    this.#rest = [];
    await this.#parts.transaction.end();
    this.#parts.leave();
  }

  async #next(rows: number, bytes: number): Promise<readonly ClaimedEvent[]> {
    const { shape, reader, transaction, context } = this.#parts;
    try {
      if (this.#ready.length === 0) await this.#fill(Math.max(1, rows));
      const count = rowsThatFit(this.#ready, rows, bytes, reader);
      const page = this.#ready.slice(0, count);
      requireIds(page, shape);
      this.#ready = this.#ready.slice(count);
      return await readEvents(transaction.session, shape, reader, page);
    } catch (error) {
      throw translateError(error, context);
    }
  }

  async #fill(rowsMax: number): Promise<void> {
    const { unique } = this.#parts.shape.order;
    // One row more than a page shows whether the page's last group goes on.
    const most = unique ? Math.min(rowsMax, FETCH_ROWS_MAX) : rowsMax + 1;
    const wanted = most - this.#rest.length;
    let rows: Row[] = this.#rest;
    if (!this.#exhausted && wanted > 0) {
      const fetched = await this.#fetch(wanted);
      this.#exhausted = fetched.length < wanted;
      rows = [...rows, ...fetched];
    }
    const count = unique ? rowsMax : wholeGroups(rows, rowsMax, this.#exhausted, this.#orderOf);
    this.#ready = unique ? rows.slice(0, count) : sortTies(rows.slice(0, count), this.#orderOf);
    this.#rest = rows.slice(count);
  }

  async #fetch(count: number): Promise<readonly Row[]> {
    const { session } = this.#parts.transaction;
    const fetch = `fetch forward ${count} from run`;
    if (this.#declared) return await session.rows(fetch);
    const results = await session.script(`declare run no scroll cursor without hold for ${this.#parts.text};${fetch}`);
    this.#declared = true;
    return results.at(-1) ?? [];
  }
}

/** Nothing could ever be marked by an id that is not there. */
function requireIds(page: readonly Row[], shape: TableShape): void {
  if (!page.some((row) => row[COLUMN.id] === null)) return;
  const what = `A row of ${displayTable(shape.name)} that waits has no id: ${shape.id.replace("t.", "")} is null`;
  throw new RelayError("ID_NOT_UNIQUE", what);
}
