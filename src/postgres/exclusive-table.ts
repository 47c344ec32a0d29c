import { RelayError } from "../core/errors.ts";
import type { SourceWarning } from "../ports/queue-store.ts";
import { displayTable, type TableName } from "./identifiers.ts";
import type { Database } from "./pool.ts";
import type { Session } from "./session.ts";
import {
  firstComers,
  ledgerOfAnother,
  type Reader,
  readerOf,
  readersSql,
  rivalsOf,
  sharersText,
  strayedEnds,
} from "./sharers.ts";
import { glance } from "./transaction.ts";

/**
 * After the others are gone a newcomer waits for so many of their leases: instances that lost their lease together with the database join
 * again in any order, and the one who came second must not become the first by that.
 */
const GRACE_LEASES = 1.5;

/** Keeps a pipeline from marking rows, or moving lanes on, that belong to another deployment. */
export class ExclusiveTable {
  readonly #database: Database;
  readonly #table: TableName;
  readonly #pipeline: string;
  readonly #use: "queue" | "log";
  readonly #nowMs: () => number;
  /** Who came first when it was last looked, and how long that counts. */
  #yielded: { readonly untilMs: number; readonly error: RelayError } | null = null;
  #owner: string | null = null;

  constructor(
    database: Database,
    table: TableName,
    pipeline: string,
    {
      nowMs = () => performance.now(),
      use = "queue",
    }: { readonly nowMs?: () => number; readonly use?: "queue" | "log" } = {},
  ) {
    this.#database = database;
    this.#table = table;
    this.#pipeline = pipeline;
    this.#nowMs = nowMs;
    this.#use = use;
  }

  /**
   * In the transaction that takes lanes: throws TABLE_SHARED while another deployment serves the table. Pipelines of one
   * table take lanes one after the other, so that of two newcomers the second sees the first.
   */
  async mayTake(session: Session, owner: string): Promise<void> {
    this.#owner = owner;
    const { tables } = this.#database;
    const { schema, table } = this.#table;
    await session.rows(
      `select from ${tables.pipelines} where source_schema = $1 and source_table = $2 order by name for no key update`,
      [schema, table],
    );
    const readers = (await session.rows(readersSql(tables, this.#table))).map(readerOf);
    const me = this.#me(readers);
    if (me === undefined) return;
    this.#yieldTo(me, readers);
    if (me.service === null || me.service === me.formerService) return;
    await session.rows(`update ${tables.pipelines} set service = $2 where name = $1`, [me.pipeline, me.service]);
  }

  #yieldTo(me: Reader, readers: readonly Reader[]): void {
    const ofAnother = ledgerOfAnother(me);
    if (ofAnother !== null) throw new RelayError("TABLE_SHARED", ofAnother);
    const first = firstComers(me, readers);
    if (first.length > 0) {
      const error = new RelayError("TABLE_SHARED", sharersText(this.#table, me, first));
      const graceMs = GRACE_LEASES * Math.max(...first.map(({ leaseMs }) => leaseMs));
      this.#yielded = { untilMs: this.#nowMs() + graceMs, error };
      throw error;
    }
    if (this.#yielded !== null && this.#nowMs() < this.#yielded.untilMs) throw this.#yielded.error;
    this.#yielded = null;
  }

  /** Nothing is marked in a log: there, several pipelines may well read the same. */
  #me(readers: readonly Reader[]): Reader | undefined {
    const me = readers.find(({ instance, pipeline }) => instance === this.#owner && pipeline === this.#pipeline);
    return this.#use === "log" && me !== undefined ? { ...me, takes: undefined } : me;
  }

  /** Also of those who came second, and of instances of our own that lead elsewhere. */
  async warnings(): Promise<readonly SourceWarning[]> {
    const context = this.#database.errorContext("looking for other readers", displayTable(this.#table));
    const text = readersSql(this.#database.tables, this.#table);
    const rows = await glance(this.#database.pool, context, this.#database.timeouts.statementMs, text);
    const readers = rows.map(readerOf);
    const me = this.#me(readers);
    if (me === undefined) return [];
    const others = [...rivalsOf(me, readers), ...strayedEnds(me, readers)];
    if (others.length === 0) return [];
    const { code, message } = new RelayError("TABLE_SHARED", sharersText(this.#table, me, others));
    return [{ code, reason: message }];
  }
}
