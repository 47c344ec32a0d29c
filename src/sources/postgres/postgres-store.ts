import { RelayError } from "../../core/errors.ts";
import type {
  Backlog,
  DurableClaims,
  Grant,
  Heads,
  PipelineSpec,
  QueueStore,
  Run,
  RunRequest,
  Settlement,
  SettleResult,
  SourceWarning,
} from "../../ports/queue-store.ts";
import { ExclusiveTable } from "../../postgres/exclusive-table.ts";
import { readLivingHolds } from "../../postgres/holds.ts";
import { displayTable, quoteLiteral } from "../../postgres/identifiers.ts";
import { pipelineIdentity } from "../../postgres/identity.ts";
import { laneStateOf, release, survey, type TakenLane, takeOver, writeSettings } from "../../postgres/lanes.ts";
import { requireSchema } from "../../postgres/migrations/migrate.ts";
import { pollTimeKeeper, registerPipeline } from "../../postgres/pipelines.ts";
import type { Database } from "../../postgres/pool.ts";
import { rowSecurityWarnings } from "../../postgres/row-security.ts";
import type { Row, Session } from "../../postgres/session.ts";
import { takenTypes } from "../../postgres/taken-types.ts";
import { timelineSql } from "../../postgres/timeline.ts";
import {
  glance,
  openTransaction,
  statement,
  type TransactionSettings,
  transaction,
} from "../../postgres/transaction.ts";
import { backlogOf, ConflictWatch } from "./counted-table.ts";
import { EventReader } from "./event-reader.ts";
import { claimHeads } from "./heads.ts";
import type { PendingFilter, PendingScope } from "./pending-condition.ts";
import { PostgresRun } from "./postgres-run.ts";
import { probeSql, pruneSql, runSql, unroutedSql } from "./postgres-store.sql.ts";
import { readUnsettled } from "./read-unsettled.ts";
import { reviewHolds } from "./review-holds.ts";
import { TableSettler } from "./settle.ts";
import type { TableShape } from "./table-shape.ts";

interface StoreParts {
  readonly database: Database;
  readonly spec: PipelineSpec;
  /** The table's name for messages. */
  readonly name: string;
  /** Reads the table's shape; `before` keeps the columns that were used so far. */
  readonly readShape: (before?: TableShape) => Promise<TableShape>;
  /** Absent: claims live in the memory of their owner. */
  readonly claims?: (prepared: () => Promise<PreparedTable>) => TableClaims;
}

/** The table's part of a pipeline, once its shape is known. */
export interface PreparedTable {
  readonly scope: PendingScope;
  readonly reader: EventReader;
}

/** The operations that differ where claims are stored in the rows. */
export interface TableClaims extends DurableClaims {
  /** Runs in the transaction in which these lanes change their owner. */
  onTaken(session: Session, taken: readonly TakenLane[]): Promise<void>;
  release(grant: Grant, suspects: readonly string[]): Promise<void>;
  begin(request: RunRequest, probe: (grants: readonly Grant[]) => Promise<boolean>): Promise<Run>;
  claimHeads(grant: Grant, ids: readonly string[]): Promise<Heads>;
  settle(settlement: Settlement): Promise<SettleResult>;
  prune(olderThanMs: number, rows: number): Promise<number>;
}

/** What is known of the table since its shape was last read. */
interface Prepared extends PreparedTable {
  readonly conflicts: ConflictWatch | null;
  readonly settler: TableSettler;
  readonly exclusive: ExclusiveTable;
}

/**
 * Settings of a run. The small fraction makes the planner prefer the first rows, so it walks the index in order instead
 * of sorting; the memory keeps the subplans that leave out holds hashed.
 */
export const RUN_SETTINGS = { jit: "off", cursor_tuple_fraction: "0.0001", work_mem: "64MB" };
/**
 * Leaving a type out builds a set of all keys that have it pending. The set must fit by its estimate, or it is searched
 * row by row.
 */
const WIDE_RUN_SETTINGS = { work_mem: "256MB" };
// The check may have to scan the table: give up early, the next one follows soon.
const CONFLICT_CHECK_MS = 2_000;

/**
 * Reads pending rows of a table, in the order of writing, and marks those that were delivered. Nothing is sent twice by
 * a live owner; the fence in every write keeps a former owner from marking rows of its successor.
 */
export class PostgresStore implements QueueStore {
  readonly #claims: TableClaims | null;
  readonly #parts: StoreParts;
  readonly #keepPollTime: () => Promise<void>;
  #prepared: Prepared | null = null;

  constructor(parts: StoreParts) {
    this.#parts = parts;
    this.#keepPollTime = pollTimeKeeper(parts.database, parts.spec.name);
    this.#claims = parts.claims?.(() => this.#ready()) ?? null;
  }

  get durableClaims(): DurableClaims | null {
    return this.#claims;
  }

  async prepare(): Promise<{ readonly lanes: number }> {
    const { database, readShape, spec } = this.#parts;
    await requireSchema(database);
    const shape = await readShape(this.#prepared?.scope.shape);
    const laneCount = await transaction(database.pool, writeSettings(database, "preparing the pipeline"), (session) =>
      registerPipeline(session, database, {
        name: spec.name,
        source: shape.name,
        lanes: spec.lanes,
        takes: spec.types,
      }),
    );
    const scope = { shape, tables: database.tables, pipeline: spec.name, types: spec.types, laneCount };
    const { payloadBytesMax, headersMax } = spec;
    const { nullHeaders, payload } = shape;
    const isBytea = payload.kind === "bytea";
    const needsPayload = payload.isRequired ?? false;
    const reader = new EventReader({ payloadBytesMax, headersMax, isBytea, needsPayload, nullHeaders });
    const conflicts = shape.conflicts === null ? null : new ConflictWatch(() => this.#findConflicts(scope));
    const settler = new TableSettler(database, spec.name, shape);
    const exclusive = this.#prepared?.exclusive ?? new ExclusiveTable(database, shape.name, spec.name);
    this.#prepared = { scope, reader, conflicts, settler, exclusive };
    return { lanes: laneCount };
  }

  identity() {
    return pipelineIdentity(this.#parts.database, this.#parts.spec.name);
  }

  survey() {
    return survey(this.#parts.database, this.#parts.spec.name, this.#parts.spec.service);
  }

  async takeOver(owner: string, lanes: readonly number[]) {
    const { exclusive, scope } = await this.#ready();
    const mayTake = (session: Session) => exclusive.mayTake(session, owner);
    const claims = this.#claims;
    const onTaken = async (session: Session, taken: readonly TakenLane[]) => await claims?.onTaken(session, taken);
    return await takeOver(this.#parts.database, scope, owner, lanes, { mayTake, onTaken });
  }

  async release(grant: Grant, suspects: readonly string[] = []): Promise<void> {
    if (this.#claims !== null) return await this.#claims.release(grant, suspects);
    await release(this.#parts.database, this.#parts.spec.name, grant, suspects);
  }

  async probe(grants: readonly Grant[]): Promise<boolean> {
    const { scope, conflicts } = await this.#ready();
    await this.#keepPollTime();
    const rows = (await conflicts?.found()) ? "all" : "main";
    const filter: PendingFilter = { rows, lanes: grants.map(({ lane }) => lane), holds: { ids: true, keys: true } };
    return await this.#exists(scope, filter, this.#parts.database.timeouts.readMs);
  }

  async begin(request: RunRequest): Promise<Run> {
    const { database, spec } = this.#parts;
    const { scope, reader, conflicts } = await this.#ready();
    await this.#keepPollTime();
    if (this.#claims !== null) return await this.#claims.begin(request, (grants) => this.probe(grants));
    const { grants, exceptKeys, exceptTypes } = request;
    // Rows with contradicting flags are rare and no index finds them: they are read only while the watch has found
    // some.
    const hasConflicts = (await conflicts?.found()) ?? false;
    const lanes = grants.map(({ lane }) => lane);
    const leave = await database.runs.enter();
    try {
      const runSettings = exceptTypes.length > 0 ? { ...RUN_SETTINGS, ...WIDE_RUN_SETTINGS } : RUN_SETTINGS;
      const settings = this.#readSettings("reading events", database.timeouts.readMs, runSettings);
      const open = await openTransaction(database.pool, settings, lanesSql(scope, lanes, await timelineSql(database)));
      const [first] = open.firstRows;
      const holds = { ids: first?.[4] === "t", keys: first?.[5] === "t" };
      const rows = hasConflicts ? ("all" as const) : ("main" as const);
      const filter = { rows, lanes, holds, exceptKeys, exceptTypes };
      return new PostgresRun({
        shape: scope.shape,
        reader,
        lanes: open.firstRows.map((row) => laneStateOf(row, row[6])),
        transaction: open,
        text: runSql(scope, filter, spec.payloadBytesMax),
        context: settings.context,
        semaphore: database.runs,
        leave,
      });
    } catch (error) {
      leave();
      throw error;
    }
  }

  async claimHeads(grant: Grant, ids: readonly string[]): Promise<Heads> {
    if (this.#claims !== null) return await this.#claims.claimHeads(grant, ids);
    const { scope, reader } = await this.#ready();
    const { payloadBytesMax } = this.#parts.spec;
    return await claimHeads(this.#parts.database, { scope, reader, payloadBytesMax, grant, ids });
  }

  async readUnsettled(ids: readonly string[]) {
    const { scope, reader } = await this.#ready();
    return await readUnsettled(this.#parts.database, scope, reader, this.#parts.spec.payloadBytesMax, ids);
  }

  async settle(settlement: Settlement): Promise<SettleResult> {
    if (this.#claims !== null) return await this.#claims.settle(settlement);
    const { settler } = await this.#ready();
    return await settler.settle(settlement);
  }

  async reviewHolds(grant: Grant) {
    const { scope } = await this.#ready();
    return await reviewHolds(this.#parts.database, scope.pipeline, scope.shape, grant);
  }

  livingHolds({ lane }: Grant) {
    return readLivingHolds(this.#parts.database, this.#parts.spec.name, lane);
  }

  async unrouted(): Promise<readonly { readonly type: string; readonly count: number }[]> {
    const { scope } = await this.#ready();
    const { rules, reporter } = await takenTypes(this.#parts.database, scope.shape.name);
    if (rules === null || (reporter ?? scope.pipeline) !== scope.pipeline) return [];
    const rows = await this.#read("searching for unrouted events", unroutedSql(scope.shape, rules));
    return rows.map((row) => ({ type: row[0] ?? "", count: Number(row[1]) }));
  }

  async backlog(): Promise<Backlog> {
    const { scope, conflicts } = await this.#ready();
    const rows = (await conflicts?.found()) ? "all" : "main";
    return await backlogOf(this.#parts.database, scope, rows);
  }

  async warnings(): Promise<readonly SourceWarning[]> {
    const { exclusive, scope } = await this.#ready();
    const hidden = await rowSecurityWarnings(this.#parts.database, scope.shape.name, "queue");
    return [...hidden, ...(await exclusive.warnings())];
  }

  async prune(olderThanMs: number, rows: number): Promise<number> {
    if (this.#claims !== null) return await this.#claims.prune(olderThanMs, rows);
    const { scope } = await this.#ready();
    const { shape } = scope;
    if (shape.deliveredAt === null) {
      const what = `${displayTable(shape.name)} has no timestamp by which to delete delivered events`;
      throw new RelayError("COLUMN_MISSING", what);
    }
    const settings = writeSettings(this.#parts.database, "deleting delivered events", displayTable(shape.name));
    const text = pruneSql(shape, { deliveredAt: shape.deliveredAt, olderThanMs, rows });
    const [row] = await statement(this.#parts.database.pool, settings, text);
    return Number(row?.[0]);
  }

  async #ready(): Promise<Prepared> {
    if (this.#prepared === null) await this.prepare();
    return this.#prepared!;
  }

  async #findConflicts(scope: PendingScope): Promise<boolean> {
    const lanes = Array.from({ length: scope.laneCount }, (_, lane) => lane);
    return await this.#exists(scope, { rows: "conflicts", lanes, holds: { ids: true, keys: true } }, CONFLICT_CHECK_MS);
  }

  async #exists(scope: PendingScope, filter: PendingFilter, timeoutMs: number): Promise<boolean> {
    const { database } = this.#parts;
    const context = database.errorContext("searching for events", displayTable(scope.shape.name));
    const rows = await glance(database.pool, context, timeoutMs, probeSql(scope, filter));
    return rows.length > 0;
  }

  async #read(doing: string, text: string): Promise<readonly Row[]> {
    const { readMs } = this.#parts.database.timeouts;
    const settings = this.#readSettings(doing, readMs, { jit: "off", work_mem: "64MB" });
    return await statement(this.#parts.database.pool, { ...settings, isolation: "read committed" }, text);
  }

  #readSettings(doing: string, timeoutMs: number, settings: Readonly<Record<string, string>>): TransactionSettings {
    const { database, name } = this.#parts;
    return {
      context: database.errorContext(
        doing,
        this.#prepared === null ? name : displayTable(this.#prepared.scope.shape.name),
      ),
      statementTimeoutMs: timeoutMs,
      idleTimeoutMs: database.timeouts.idleInRunMs,
      isolation: "repeatable read",
      readOnly: true,
      settings,
    };
  }
}

/**
 * The run's first statement. It fixes the snapshot and also reads whether there are holds to leave out. An event that
 * parks its key is left out with the key; only the other held events are left out by id.
 */
function lanesSql({ tables, pipeline }: PendingScope, lanes: readonly number[], timeline: string | null): string {
  const ofPipeline = `pipeline = ${quoteLiteral(pipeline)}`;
  return `select lane, owner, epoch, settled_batch,
  exists (select from ${tables.holds} where ${ofPipeline} and not (parks and event_key is not null)),
  exists (select from ${tables.holds} where ${ofPipeline} and parks and event_key is not null),
  ${timeline}
from ${tables.lanes} where ${ofPipeline} and lane in (${lanes.length > 0 ? lanes.join(", ") : "null"}) order by lane`;
}
