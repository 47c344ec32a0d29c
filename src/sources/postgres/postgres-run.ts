import { RelayError } from "../../core/errors.ts";
import type { Semaphore } from "../../core/semaphore.ts";
import type { ClaimedEvent, LaneState, Run } from "../../ports/queue-store.ts";
import { type ErrorContext, translateError } from "../../postgres/errors.ts";
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
  /** The statement of the cursor. */
  readonly text: string;
  readonly context: ErrorContext;
  /** Limits the open runs; others wait here for a connection. */
  readonly semaphore: Semaphore;
  /** Releases the connection for the next run. */
  readonly leave: () => void;
}

/** Rows per fetch, because each row can be as large as the largest inline row. */
const FETCH_ROWS_MAX = 500;

/**
 * A cursor in one snapshot. It uses DECLARE and FETCH instead of the protocol's portals: only a declared cursor is
 * planned for its first rows, each FETCH has its own timeout, and large payloads can be loaded between two fetches.
 */
export class PostgresRun implements Run {
  readonly lanes: readonly LaneState[];
  readonly #parts: RunParts;
  readonly #orderOf: OrderOf;
  /** Complete and sorted rows, not returned yet. */
  #ready: Row[] = [];
  /** Rows in order whose last group may continue. */
  #rest: Row[] = [];
  #declared = false;
  #exhausted = false;
  #ended = false;
  /** The page being read: the connection runs one statement at a time. */
  #reading: Promise<unknown> = Promise.resolve();

  constructor(parts: RunParts) {
    this.#parts = parts;
    this.lanes = parts.lanes;
    const { isCreatedAt } = parts.shape.order;
    this.#orderOf = isCreatedAt ? (row) => row[COLUMN.createdAt] : (row) => row[COLUMN.order];
  }

  get isAwaited(): boolean {
    return this.#parts.semaphore.isAwaited;
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
    // One row more than a page shows whether the page's last group continues.
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

/** A row without an id could never be marked, so it would be sent again and again. */
function requireIds(page: readonly Row[], shape: TableShape): void {
  if (!page.some((row) => row[COLUMN.id] === null)) return;
  const what = `A pending row of ${displayTable(shape.name)} has no id: ${shape.id.replace("t.", "")} is null`;
  throw new RelayError("ID_NOT_UNIQUE", what);
}
