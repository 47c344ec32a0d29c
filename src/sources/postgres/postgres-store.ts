import { RelayError } from "../../core/errors.ts";
import type {
  Backlog,
  Grant,
  PipelineSpec,
  QueueStore,
  Run,
  RunRequest,
  Settlement,
  SourceWarning,
} from "../../ports/queue-store.ts";
import { readBacklog } from "../../postgres/backlog.ts";
import type { ColumnNames } from "../../postgres/column-names.ts";
import { ExclusiveTable } from "../../postgres/exclusive-table.ts";
import { readLivingHolds } from "../../postgres/holds.ts";
import { displayTable, quoteLiteral } from "../../postgres/identifiers.ts";
import { pipelineIdentity } from "../../postgres/identity.ts";
import { laneStateOf, release, survey, takeOver, writeSettings } from "../../postgres/lanes.ts";
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
import { backlogSql } from "./backlog.sql.ts";
import { EventReader } from "./event-reader.ts";
import { claimHeads } from "./heads.ts";
import { keptColumns } from "./kept-columns.ts";
import { lookAt } from "./look-at.ts";
import type { PendingFilter, PendingScope } from "./pending-condition.ts";
import { PostgresRun } from "./postgres-run.ts";
import { probeSql } from "./probe.sql.ts";
import { pruneSql } from "./prune.sql.ts";
import { reviewHolds } from "./review-holds.ts";
import { runSql } from "./run.sql.ts";
import { TableSettler } from "./settle.ts";
import { StrayWatch } from "./stray-watch.ts";
import { readShape, type TableReference } from "./table-discovery.ts";
import { unroutedSql } from "./unrouted.sql.ts";

interface StoreParts {
  readonly database: Database;
  readonly reference: TableReference;
  readonly columns: ColumnNames;
  readonly spec: PipelineSpec;
}

/** What is known of the table since it was last looked at. */
interface Prepared {
  readonly scope: PendingScope;
  readonly reader: EventReader;
  readonly strays: StrayWatch | null;
  readonly settler: TableSettler;
  readonly exclusive: ExclusiveTable;
}

/**
 * Settings of a run. A small fraction makes the planner choose the plan that shows the first rows soon, hence the
 * index in order instead of a sort; the memory keeps the subplans that leave holds out hashed.
 */
export const RUN_SETTINGS = { jit: "off", cursor_tuple_fraction: "0.0001", work_mem: "64MB" };
/** Leaving a type out means a set of all keys that have it pending: by its estimate it must fit, or it is searched row by row. */
const WIDE_RUN_SETTINGS = { work_mem: "256MB" };
const STRAY_LOOK_MS = 2_000;

export class PostgresStore implements QueueStore {
  readonly durableClaims = null;
  readonly #parts: StoreParts;
  readonly #keepPollTime: () => Promise<void>;
  #prepared: Prepared | null = null;

  constructor(parts: StoreParts) {
    this.#parts = parts;
    this.#keepPollTime = pollTimeKeeper(parts.database, parts.spec.name);
  }

  async prepare(): Promise<{ readonly lanes: number }> {
    const { database, reference, columns, spec } = this.#parts;
    await requireSchema(database);
    const before = this.#prepared?.scope.shape;
    const shape = await readShape(database, reference, keptColumns(columns, before));
    const laneCount = await transaction(database.pool, writeSettings(database, "preparing the pipeline"), (session) =>
      registerPipeline(session, database, { name: spec.name, source: shape.name, lanes: spec.lanes }),
    );
    const scope = { shape, tables: database.tables, pipeline: spec.name, types: spec.types, laneCount };
    const { payloadBytesMax, headersMax } = spec;
    const reader = new EventReader({ payloadBytesMax, headersMax, isBytea: shape.payload.kind === "bytea" });
    const strays = shape.strays === null ? null : new StrayWatch(() => this.#lookForStrays(scope));
    const settler = new TableSettler(database, spec.name, shape);
    const exclusive = this.#prepared?.exclusive ?? new ExclusiveTable(database, shape.name, spec.name);
    this.#prepared = { scope, reader, strays, settler, exclusive };
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
    return await takeOver(this.#parts.database, scope, owner, lanes, { mayTake });
  }

  release(grant: Grant, suspects: readonly string[] = []) {
    return release(this.#parts.database, this.#parts.spec.name, grant, suspects);
  }

  async probe(grants: readonly Grant[]): Promise<boolean> {
    const { scope, strays } = await this.#ready();
    await this.#keepPollTime();
    const rows = (await strays?.found()) ? "all" : "main";
    const filter: PendingFilter = { rows, lanes: grants.map(({ lane }) => lane), holds: { ids: true, keys: true } };
    return await this.#exists(scope, filter, this.#parts.database.timeouts.readMs);
  }

  async begin({ grants, exceptKeys, exceptTypes }: RunRequest): Promise<Run> {
    const { database, spec } = this.#parts;
    const { scope, reader, strays } = await this.#ready();
    await this.#keepPollTime();
    const isStrayed = (await strays?.found()) ?? false;
    const lanes = grants.map(({ lane }) => lane);
    const leave = await database.runs.enter();
    try {
      const runSettings = exceptTypes.length > 0 ? { ...RUN_SETTINGS, ...WIDE_RUN_SETTINGS } : RUN_SETTINGS;
      const settings = this.#readSettings("reading events", database.timeouts.readMs, runSettings);
      const open = await openTransaction(database.pool, settings, lanesSql(scope, lanes, await timelineSql(database)));
      const [first] = open.firstRows;
      const holds = { ids: first?.[4] === "t", keys: first?.[5] === "t" };
      const rows = isStrayed ? ("all" as const) : ("main" as const);
      const filter = { rows, lanes, holds, exceptKeys, exceptTypes };
      return new PostgresRun({
        shape: scope.shape,
        reader,
        lanes: open.firstRows.map((row) => laneStateOf(row, row[6])),
        transaction: open,
        text: runSql(scope, filter, spec.payloadBytesMax),
        context: settings.context,
        gate: database.runs,
        leave,
      });
    } catch (error) {
      leave();
      throw error;
    }
  }

  async claimHeads(grant: Grant, ids: readonly string[]) {
    const { scope, reader } = await this.#ready();
    const { payloadBytesMax } = this.#parts.spec;
    return await claimHeads(this.#parts.database, { scope, reader, payloadBytesMax, grant, ids });
  }

  async lookAt(ids: readonly string[]) {
    const { scope, reader } = await this.#ready();
    return await lookAt(this.#parts.database, scope, reader, this.#parts.spec.payloadBytesMax, ids);
  }

  async settle(settlement: Settlement) {
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
    const { rules, teller } = await takenTypes(this.#parts.database, scope.shape.name);
    if (rules === null || (teller ?? scope.pipeline) !== scope.pipeline) return [];
    const rows = await this.#read("looking for unrouted events", unroutedSql(scope.shape, rules));
    return rows.map((row) => ({ type: row[0] ?? "", count: Number(row[1]) }));
  }

  async backlog(): Promise<Backlog> {
    const { scope, strays } = await this.#ready();
    const rows = (await strays?.found()) ? "all" : "main";
    const context = this.#parts.database.errorContext("counting what waits", displayTable(scope.shape.name));
    const waiting = `select from ${scope.shape.quotedName} t where ${scope.shape.main}`;
    return await readBacklog(this.#parts.database, { context, count: backlogSql(scope, rows), waiting });
  }

  async warnings(): Promise<readonly SourceWarning[]> {
    const { exclusive, scope } = await this.#ready();
    const hidden = await rowSecurityWarnings(this.#parts.database, scope.shape.name, "queue");
    return [...hidden, ...(await exclusive.warnings())];
  }

  async prune(olderThanMs: number, rows: number): Promise<number> {
    const { scope } = await this.#ready();
    const { shape } = scope;
    if (shape.deliveredAt === null) {
      const what = `${displayTable(shape.name)} has no time by which delivered events could be deleted`;
      throw new RelayError("COLUMN_MISSING", what);
    }
    const settings = writeSettings(this.#parts.database, "deleting delivered events", displayTable(shape.name));
    const text = pruneSql(shape, shape.deliveredAt, olderThanMs, rows);
    const [row] = await statement(this.#parts.database.pool, settings, text);
    return Number(row?.[0]);
  }

  async #ready(): Promise<Prepared> {
    if (this.#prepared === null) await this.prepare();
    return this.#prepared!;
  }

  async #lookForStrays(scope: PendingScope): Promise<boolean> {
    const lanes = Array.from({ length: scope.laneCount }, (_, lane) => lane);
    return await this.#exists(scope, { rows: "strays", lanes, holds: { ids: true, keys: true } }, STRAY_LOOK_MS);
  }

  async #exists(scope: PendingScope, filter: PendingFilter, timeoutMs: number): Promise<boolean> {
    const { database } = this.#parts;
    const context = database.errorContext("looking for events", displayTable(scope.shape.name));
    const rows = await glance(database.pool, context, timeoutMs, probeSql(scope, filter));
    return rows.length > 0;
  }

  async #read(doing: string, text: string): Promise<readonly Row[]> {
    const { readMs } = this.#parts.database.timeouts;
    const settings = this.#readSettings(doing, readMs, { jit: "off", work_mem: "64MB" });
    return await statement(this.#parts.database.pool, { ...settings, isolation: "read committed" }, text);
  }

  #readSettings(doing: string, timeoutMs: number, settings: Readonly<Record<string, string>>): TransactionSettings {
    const { database, reference } = this.#parts;
    return {
      context: database.errorContext(
        doing,
        this.#prepared ? displayTable(this.#prepared.scope.shape.name) : reference.schema,
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
 * The run's first statement: it fixes the snapshot, and whether there are holds to leave out is part of it. An event
 * that parks its key is left out with the key; only the other held events have to be told by their ids.
 */
function lanesSql({ tables, pipeline }: PendingScope, lanes: readonly number[], timeline: string | null): string {
  const ofPipeline = `pipeline = ${quoteLiteral(pipeline)}`;
  return `select lane, owner, epoch, settled_batch,
  exists (select from ${tables.holds} where ${ofPipeline} and not (parks and event_key is not null)),
  exists (select from ${tables.holds} where ${ofPipeline} and parks and event_key is not null),
  ${timeline}
from ${tables.lanes} where ${ofPipeline} and lane in (${lanes.length > 0 ? lanes.join(", ") : "null"}) order by lane`;
}
