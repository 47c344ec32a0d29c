import { RelayError } from "../core/errors.ts";
import type { SourceWarning } from "../ports/queue-store.ts";
import { displayTable, type TableName } from "./identifiers.ts";
import type { Database } from "./pool.ts";
import type { Session } from "./session.ts";
import {
  conflictingReaders,
  earlierDeployments,
  ledgerOfAnother,
  otherDestinations,
  type Reader,
  readerOf,
  readersSql,
  sharedTableText,
} from "./shared-table.ts";
import { glance } from "./transaction.ts";

/**
 * After the other deployment is gone, a newcomer waits for this many of its leases. Instances that lost their leases
 * together with the database rejoin in any order, and the second deployment must not become the first that way.
 */
const GRACE_LEASES = 1.5;

/** Keeps two deployments from serving one table: rows and lanes that belong to another deployment are never touched. */
export class ExclusiveTable {
  readonly #database: Database;
  readonly #table: TableName;
  readonly #pipeline: string;
  readonly #use: "queue" | "log";
  readonly #nowMs: () => number;
  /** The deployment that came first at the last check, and how long that decision counts. */
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
   * Runs in the transaction that takes lanes over. Throws TABLE_SHARED while another deployment serves the table.
   * Pipelines of one table take lanes one after the other, so that of two newcomers the second sees the first.
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
    const first = earlierDeployments(me, readers);
    if (first.length > 0) {
      const error = new RelayError("TABLE_SHARED", sharedTableText(this.#table, me, first));
      const graceMs = GRACE_LEASES * Math.max(...first.map(({ leaseMs }) => leaseMs));
      this.#yielded = { untilMs: this.#nowMs() + graceMs, error };
      throw error;
    }
    if (this.#yielded !== null && this.#nowMs() < this.#yielded.untilMs) throw this.#yielded.error;
    this.#yielded = null;
  }

  /** A log has no marks, so several pipelines can safely read the same events. */
  #me(readers: readonly Reader[]): Reader | undefined {
    const me = readers.find(({ instance, pipeline }) => instance === this.#owner && pipeline === this.#pipeline);
    return this.#use === "log" && me !== undefined ? { ...me, takes: undefined } : me;
  }

  /** Also warns the deployment that came second, and about our own instances that publish to another destination. */
  async warnings(): Promise<readonly SourceWarning[]> {
    const context = this.#database.errorContext("checking for other readers", displayTable(this.#table));
    const text = readersSql(this.#database.tables, this.#table);
    const rows = await glance(this.#database.pool, context, this.#database.timeouts.statementMs, text);
    const readers = rows.map(readerOf);
    const me = this.#me(readers);
    if (me === undefined) return [];
    const others = [...conflictingReaders(me, readers), ...otherDestinations(me, readers)];
    if (others.length === 0) return [];
    const { code, message } = new RelayError("TABLE_SHARED", sharedTableText(this.#table, me, others));
    return [{ code, reason: message }];
  }
}
