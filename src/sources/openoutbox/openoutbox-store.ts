import type {
  Backlog,
  DurableClaims,
  Grant,
  PipelineSpec,
  QueueStore,
  Run,
  RunRequest,
  Settlement,
  SourceWarning,
} from "../../ports/queue-store.ts";
import { readBacklog } from "../../postgres/backlog.ts";
import { ExclusiveTable } from "../../postgres/exclusive-table.ts";
import { readLivingHolds } from "../../postgres/holds.ts";
import { displayTable, quoteLiteral, type TableName } from "../../postgres/identifiers.ts";
import { pipelineIdentity } from "../../postgres/identity.ts";
import { laneStateOf, survey, writeSettings } from "../../postgres/lanes.ts";
import { requireSchema } from "../../postgres/migrations/migrate.ts";
import { pollTimeKeeper, registerPipeline } from "../../postgres/pipelines.ts";
import type { Database } from "../../postgres/pool.ts";
import { rowSecurityWarnings } from "../../postgres/row-security.ts";
import type { Row } from "../../postgres/session.ts";
import { takenTypes } from "../../postgres/taken-types.ts";
import { timelineSql } from "../../postgres/timeline.ts";
import { glance, statement, transaction } from "../../postgres/transaction.ts";
import { backlogSql } from "./backlog.sql.ts";
import { CLAIM_SETTINGS, ClaimMemory, claim, claimHeads, lookAt, type Queue } from "./claim.ts";
import { releaseLane, takeLanes } from "./lane-handover.ts";
import { OpenOutboxClaims } from "./openoutbox-claims.ts";
import { OpenOutboxRun } from "./openoutbox-run.ts";
import { eventTable } from "./openoutbox-table.ts";
import { probeSql } from "./probe.sql.ts";
import { Pruner } from "./pruner.ts";
import { reviewHolds } from "./review-holds.ts";
import { settle } from "./settle.ts";
import { checkTable } from "./table-check.ts";
import { unroutedSql } from "./unrouted.sql.ts";
import { VainClaims } from "./vain-claims.ts";

interface StoreParts {
  readonly database: Database;
  readonly table: TableName;
  readonly spec: PipelineSpec;
  readonly leaseMs: number;
  readonly lockPrefix: string;
}

/** What the column holds; a limit beyond it is none. */
const ATTEMPTS_MAX = 2_147_483_647;

export class OpenOutboxStore implements QueueStore {
  readonly durableClaims: DurableClaims;
  readonly #parts: StoreParts;
  readonly #keepPollTime: () => Promise<void>;
  readonly #pruner = new Pruner();
  readonly #memory = new ClaimMemory();
  readonly #exclusive: ExclusiveTable;
  readonly #vain: VainClaims;
  #queue: Queue | null = null;

  constructor(parts: StoreParts) {
    this.#parts = parts;
    this.#keepPollTime = pollTimeKeeper(parts.database, parts.spec.name);
    this.#vain = new VainClaims(parts.table);
    this.#exclusive = new ExclusiveTable(parts.database, parts.table, parts.spec.name);
    this.durableClaims = new OpenOutboxClaims(parts.leaseMs, () => this.#ready());
  }

  async prepare(): Promise<{ readonly lanes: number }> {
    const { database, table, spec, lockPrefix } = this.#parts;
    await requireSchema(database);
    const { hasOrderIndex } = await checkTable(database, table);
    const laneCount = await transaction(database.pool, writeSettings(database, "preparing the pipeline"), (session) =>
      registerPipeline(session, database, { name: spec.name, source: table, lanes: spec.lanes }),
    );
    const { name: pipeline, types } = spec;
    const attemptsMax = Math.min(Math.ceil(spec.attemptsMax), ATTEMPTS_MAX);
    const { tables } = database;
    const scope = { table: eventTable(table), tables, pipeline, types, laneCount, attemptsMax, lockPrefix };
    this.#queue = { database, spec, scope, hasOrderIndex, memory: this.#memory };
    return { lanes: laneCount };
  }

  identity() {
    return pipelineIdentity(this.#parts.database, this.#parts.spec.name);
  }

  survey() {
    return survey(this.#parts.database, this.#parts.spec.name, this.#parts.spec.service);
  }

  async takeOver(owner: string, lanes: readonly number[]) {
    return await takeLanes(await this.#ready(), owner, lanes, (session) => this.#exclusive.mayTake(session, owner));
  }

  async release(grant: Grant, suspects: readonly string[] = []): Promise<void> {
    await releaseLane(await this.#ready(), grant, suspects);
  }

  async probe(grants: readonly Grant[]): Promise<boolean> {
    const { scope } = await this.#ready();
    await this.#keepPollTime();
    if (grants.length === 0) return false;
    const { database } = this.#parts;
    const context = database.errorContext("looking for events", displayTable(scope.table.name));
    const text = probeSql(
      scope,
      grants.map(({ lane }) => lane),
    );
    return (await glance(database.pool, context, database.timeouts.readMs, text)).length > 0;
  }

  async begin(request: RunRequest): Promise<Run> {
    const queue = await this.#ready();
    await this.#keepPollTime();
    const lanes = request.grants.map(({ lane }) => lane);
    const timeline = await timelineSql(this.#parts.database);
    const rows = await this.#read(
      "reading the lanes",
      `select lane, owner, epoch, settled_batch, ${timeline} from ${queue.scope.tables.lanes}
       where pipeline = ${quoteLiteral(queue.scope.pipeline)} and lane in (${lanes.join(", ") || "null"}) order by lane`,
    );
    return new OpenOutboxRun(
      rows.map((row) => laneStateOf(row, row[4])),
      async (count, bytes, rooms) => {
        const events = await claim(queue, request, count, bytes, rooms ?? null);
        // What is left out on purpose waits too.
        const leavesOut = request.exceptKeys.length + request.exceptTypes.length > 0;
        const roomy = request.grants.filter(({ lane }) => rooms === undefined || (rooms.get(lane) ?? 0) > 0);
        await this.#vain.claimed(events.length, async () => !leavesOut && (await this.probe(roomy)));
        return events;
      },
    );
  }

  async claimHeads(grant: Grant, ids: readonly string[]) {
    return await claimHeads(await this.#ready(), grant, ids);
  }

  async lookAt(ids: readonly string[]) {
    return await lookAt(await this.#ready(), ids);
  }

  async settle(settlement: Settlement) {
    return await settle(await this.#ready(), settlement);
  }

  async reviewHolds(grant: Grant) {
    return await reviewHolds(await this.#ready(), grant);
  }

  livingHolds({ lane }: Grant) {
    return readLivingHolds(this.#parts.database, this.#parts.spec.name, lane);
  }

  async unrouted(): Promise<readonly { readonly type: string; readonly count: number }[]> {
    const { scope } = await this.#ready();
    const { rules, teller } = await takenTypes(this.#parts.database, scope.table.name);
    if (rules === null || (teller ?? scope.pipeline) !== scope.pipeline) return [];
    const rows = await this.#read("looking for unrouted events", unroutedSql(scope.table, rules));
    return rows.map((row) => ({ type: row[0] ?? "", count: Number(row[1]) }));
  }

  async backlog(): Promise<Backlog> {
    const { scope } = await this.#ready();
    const context = this.#parts.database.errorContext("counting what waits", displayTable(scope.table.name));
    const waiting = `select from ${scope.table.quotedName} t where t.status in ('PENDING', 'DELIVERING')`;
    return await readBacklog(this.#parts.database, { context, count: backlogSql(scope), waiting });
  }

  async warnings(): Promise<readonly SourceWarning[]> {
    const hidden = await rowSecurityWarnings(this.#parts.database, this.#parts.table, "queue");
    return [...hidden, ...(await this.#exclusive.warnings())];
  }

  async prune(olderThanMs: number, rows: number): Promise<number> {
    return await this.#pruner.prune(await this.#ready(), olderThanMs, rows);
  }

  async #ready(): Promise<Queue> {
    if (this.#queue === null) await this.prepare();
    return this.#queue!;
  }

  async #read(doing: string, text: string): Promise<readonly Row[]> {
    const { database, table } = this.#parts;
    const settings = {
      context: database.errorContext(doing, displayTable(table)),
      statementTimeoutMs: database.timeouts.readMs,
      readOnly: true,
      settings: { jit: "off", work_mem: CLAIM_SETTINGS.work_mem },
    };
    return await statement(database.pool, settings, text);
  }
}
