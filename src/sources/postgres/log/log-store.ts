import { RelayError } from "../../../core/errors.ts";
import {
  BACKLOG_EXACT_MAX,
  type Backlog,
  type Grant,
  type PipelineSpec,
  type QueueStore,
  type Run,
  type RunRequest,
  type Settlement,
  type SourceWarning,
} from "../../../ports/queue-store.ts";
import { readBacklog } from "../../../postgres/backlog.ts";
import { ExclusiveTable } from "../../../postgres/exclusive-table.ts";
import { readLivingHolds } from "../../../postgres/holds.ts";
import { displayTable, quoteLiteral, type TableName } from "../../../postgres/identifiers.ts";
import { pipelineIdentity } from "../../../postgres/identity.ts";
import { fenced, release, survey, takeOver, writeSettings } from "../../../postgres/lanes.ts";
import { requireSchema } from "../../../postgres/migrations/migrate.ts";
import { pollTimeKeeper, registerPipeline } from "../../../postgres/pipelines.ts";
import type { Database } from "../../../postgres/pool.ts";
import type { Session } from "../../../postgres/session.ts";
import { takenTypes } from "../../../postgres/taken-types.ts";
import { glance, transaction } from "../../../postgres/transaction.ts";
import { backlogSql } from "../backlog.sql.ts";
import { EventReader } from "../event-reader.ts";
import { claimHeads } from "../heads.ts";
import { lookAt } from "../look-at.ts";
import type { PendingScope } from "../pending-condition.ts";
import { probeSql } from "../probe.sql.ts";
import { reviewHolds } from "../review-holds.ts";
import { readCheckpoints, requireHome, takeCheckpoints, writeCheckpoints } from "./checkpoints.ts";
import type { WindowRow } from "./lane-window.ts";
import type { LogKind, LogPlace, PassRequest } from "./log-kind.ts";
import { LogLane } from "./log-lane.ts";
import { LogReading } from "./log-reading.ts";
import { LogRun } from "./log-run.ts";
import { settleLog } from "./log-settle.ts";
import { parkOnTheWay } from "./park-on-the-way.ts";
import { closedKeys } from "./parked.ts";
import { parkedShape } from "./parked-shape.ts";
import type { WakeUp } from "./wake-up.ts";

interface LogStoreParts<Segment> {
  readonly database: Database;
  /** What the pipeline reads, for people and for the dead letters. */
  readonly table: TableName;
  readonly kind: LogKind<Segment>;
  readonly spec: PipelineSpec;
  /** Rings when something is written; null where nothing does. */
  readonly wakeUp: WakeUp | null;
}

/** How long a lane that delivers nothing may be behind with its checkpoint. */
const CHECKPOINT_EVERY_MS = 1_000;

/**
 * One pipeline's view of a log: read by position, nothing is marked. What has to wait is parked beside it, and from
 * then on it is a queue like any other.
 */
export class LogStore<Segment> implements QueueStore {
  readonly durableClaims = null;
  readonly watch?: (onNews: () => void) => () => void;
  readonly #parts: LogStoreParts<Segment>;
  readonly #reader: EventReader;
  readonly #keepPollTime: () => Promise<void>;
  readonly #lanes = new Map<number, LogLane<Segment>>();
  readonly #exclusive: ExclusiveTable;
  #scope: PendingScope | null = null;
  #reading: LogReading<Segment> | null = null;
  #isInFlight: (id: string) => boolean = () => false;

  constructor(parts: LogStoreParts<Segment>) {
    this.#parts = parts;
    const { payloadBytesMax, headersMax } = parts.spec;
    this.#reader = new EventReader({ payloadBytesMax, headersMax, isBytea: true });
    this.#keepPollTime = pollTimeKeeper(parts.database, parts.spec.name);
    this.#exclusive = new ExclusiveTable(parts.database, parts.table, parts.spec.name, { use: "log" });
    const { kind, wakeUp } = parts;
    if (wakeUp !== null) this.watch = (onNews) => wakeUp.watch(onNews);
    else if (kind.watch !== undefined) this.watch = (onNews) => kind.watch!(onNews);
  }

  async prepare(): Promise<{ readonly lanes: number }> {
    const { database, kind, spec, table } = this.#parts;
    await requireSchema(database);
    await requireHome(database, spec.name);
    await kind.prepare();
    const lanes = Math.min(spec.lanes, kind.lanesMax ?? spec.lanes);
    const laneCount = await transaction(database.pool, writeSettings(database, "preparing the pipeline"), (session) =>
      registerPipeline(session, database, { name: spec.name, source: table, lanes }),
    );
    const shape = parkedShape(database, spec.name, table);
    this.#scope = { shape, tables: database.tables, pipeline: spec.name, types: spec.types, laneCount };
    this.#reading = new LogReading({ database, kind, spec, scope: this.#scope, reader: this.#reader });
    return { lanes: laneCount };
  }

  identity() {
    return pipelineIdentity(this.#parts.database, this.#parts.spec.name);
  }

  survey() {
    return survey(this.#parts.database, this.#parts.spec.name, this.#parts.spec.service);
  }

  async takeOver(owner: string, lanes: readonly number[]) {
    const { database, kind } = this.#parts;
    const { scope } = await this.#ready();
    const mayTake = (session: Session) => this.#exclusive.mayTake(session, owner);
    const taken = await takeOver(database, scope, owner, lanes, { mayTake });
    const grants = taken.map(({ grant }) => grant);
    for (const { lane } of grants) this.#lanes.delete(lane);
    for (const lane of await takeCheckpoints(database, scope.pipeline, kind, grants)) {
      this.#lanes.set(lane.grant.lane, new LogLane(kind, lane));
    }
    return taken;
  }

  release(grant: Grant, suspects: readonly string[] = []) {
    return release(this.#parts.database, this.#parts.spec.name, grant, suspects);
  }

  async probe(grants: readonly Grant[]): Promise<boolean> {
    const { scope, reading } = await this.#ready();
    const { database, kind } = this.#parts;
    await this.#keepPollTime();
    const lanes = grants.flatMap((grant) => this.#laneOf(grant) ?? []);
    if (await this.#hasLeft(lanes)) return true;
    if (await reading.looksForParked()) {
      const ready = lanes.filter((lane) => !lane.isBehind).map(({ grant }) => grant.lane);
      const filter = { rows: "main" as const, lanes: ready, holds: { ids: true, keys: true } };
      const context = database.errorContext("looking for parked events");
      const rows = await glance(database.pool, context, database.timeouts.readMs, probeSql(scope, filter));
      if (rows.length > 0) return true;
    }
    await this.#writeIdle(lanes);
    if (await kind.probe(this.#request(lanes))) return true;
    // The bell says that something was written, not to whom: it is for whoever has all lanes.
    const mayRest = lanes.length === scope.laneCount && (await this.#parts.wakeUp?.rest());
    return mayRest === true && (await kind.probe(this.#request(lanes)));
  }

  async begin(request: RunRequest): Promise<Run> {
    const { reading } = await this.#ready();
    await this.#keepPollTime();
    this.#isInFlight = request.isInFlight ?? (() => false);
    const lanes = request.grants.flatMap((grant) => this.#laneOf(grant) ?? []);
    const states = await reading.begin(request.grants, lanes);
    const host = {
      openParked: () => reading.openParked(request, lanes),
      openLog: () => this.#parts.kind.open(this.#request(lanes)),
      get hasParked() {
        return reading.hasParked;
      },
      findParked: reading.findParked,
      park: (lane: LogLane<Segment>, rows: readonly WindowRow<Segment>[]) => this.#park(lane, rows),
      ended: (some: readonly LogLane<Segment>[]) => this.#writeIdle(some),
    };
    return new LogRun(host, states, lanes, request);
  }

  async claimHeads(grant: Grant, ids: readonly string[]) {
    const { scope } = await this.#ready();
    const { payloadBytesMax } = this.#parts.spec;
    return await claimHeads(this.#parts.database, { scope, reader: this.#reader, payloadBytesMax, grant, ids });
  }

  async lookAt(ids: readonly string[]) {
    const { scope } = await this.#ready();
    const { database, kind, spec } = this.#parts;
    const read = ids.flatMap((id) => this.#waiting(id) ?? []);
    const parked = await lookAt(database, scope, this.#reader, spec.payloadBytesMax, ids);
    const known = new Set([...read, ...parked.events].map(({ id }) => id).concat(parked.unread));
    const isSettled = (id: string) => [...this.#lanes.values()].some(({ window }) => window.has(id));
    const others = ids.filter((id) => !known.has(id) && !isSettled(id));
    const found = others.length === 0 ? [] : ((await kind.find?.(others, scope.laneCount)) ?? []);
    return { events: [...read, ...parked.events, ...found], unread: parked.unread };
  }

  async settle(settlement: Settlement) {
    const { scope } = await this.#ready();
    const { database, kind, table } = this.#parts;
    const lane = this.#laneOf(settlement.grant);
    if (lane === undefined) throw fenced(scope.pipeline, settlement.grant);
    const place = {
      database,
      pipeline: scope.pipeline,
      kind,
      parked: scope.shape,
      table: displayTable(table),
      nowMs: () => performance.now(),
    };
    if (settlement.delivered.length > 0) this.#parts.wakeUp?.busy();
    if (settlement.failed.length > 0 || settlement.suspects.length > 0) this.#reading!.hasParked = true;
    return await lane.inTurn(() => settleLog(place, lane, settlement));
  }

  async reviewHolds(grant: Grant) {
    const { scope } = await this.#ready();
    return await reviewHolds(this.#parts.database, scope.pipeline, scope.shape, grant);
  }

  livingHolds({ lane }: Grant) {
    return readLivingHolds(this.#parts.database, this.#parts.spec.name, lane);
  }

  async unrouted(): Promise<readonly { readonly type: string; readonly count: number }[]> {
    const { database, kind, spec, table } = this.#parts;
    const { rules, teller } = await takenTypes(database, table);
    if (rules === null || (teller ?? spec.name) !== spec.name) return [];
    return await kind.untaken(rules);
  }

  async backlog(): Promise<Backlog> {
    const { scope } = await this.#ready();
    const { database, kind, spec, table } = this.#parts;
    const context = database.errorContext("counting what waits", displayTable(table));
    const waiting = `select from ${scope.shape.quotedName} t where ${scope.shape.main}`;
    const parked = await readBacklog(database, { context, count: backlogSql(scope, "main"), waiting });
    const heads = new Map<number, LogPlace<Segment>>();
    let done = 0;
    for (const { lane, checkpoint } of await readCheckpoints(database, spec.name, kind)) {
      const own = this.#lanes.get(lane);
      heads.set(lane, own?.window.low ?? checkpoint.place);
      done += own?.ahead().length ?? 0;
    }
    done += await this.#behindTheDead();
    const log = await kind.backlog({ heads, laneCount: scope.laneCount }, BACKLOG_EXACT_MAX + 1);
    const ages = [parked.oldestAgeMs, log.oldestAgeMs].filter((age) => age !== null);
    const pending = Math.max(0, log.pending - done);
    return {
      pending: parked.pending + pending,
      isEstimate: parked.isEstimate || log.isEstimate,
      oldestAgeMs: ages.length === 0 || parked.pending + pending === 0 ? null : Math.max(...ages),
      dead: parked.dead,
    };
  }

  async warnings(): Promise<readonly SourceWarning[]> {
    return [...((await this.#parts.kind.warnings?.()) ?? []), ...(await this.#exclusive.warnings())];
  }

  prune(olderThanMs: number, rows: number): Promise<number> {
    return this.#parts.kind.prune(olderThanMs, rows);
  }

  #laneOf({ lane, epoch }: Grant): LogLane<Segment> | undefined {
    const known = this.#lanes.get(lane);
    return known?.grant.epoch === epoch ? known : undefined;
  }

  #waiting(id: string) {
    for (const { window } of this.#lanes.values()) {
      const row = window.waiting(id);
      if (row !== undefined) return row.event;
    }
    return undefined;
  }

  #request(lanes: readonly LogLane<Segment>[]): PassRequest<Segment> {
    return {
      heads: new Map(lanes.map(({ grant, window }) => [grant.lane, window.head])),
      laneCount: this.#scope?.laneCount ?? 1,
    };
  }

  /** Rows in memory whose key waits for a person: the next run parks them. */
  async #behindTheDead(): Promise<number> {
    const waiting = [...this.#lanes.values()].flatMap(({ window }) => window.allWaiting());
    if (waiting.length === 0) return 0;
    const { database, spec } = this.#parts;
    const text = `select event_key from ${database.tables.holds} where pipeline = ${quoteLiteral(spec.name)}
      and state = 'dead' and parks and event_key is not null`;
    const context = database.errorContext("counting what waits");
    const rows = await glance(database.pool, context, database.timeouts.readMs, text);
    const keys = new Set(rows.map((row) => row[0]));
    return waiting.filter(({ event }) => keys.has(event.key)).length;
  }

  /**
   * Whether something that was read before would be shown by a run. What waits behind others is parked at once: while
   * nothing new comes there is no run to do it, and the checkpoint would stand before it.
   */
  async #hasLeft(lanes: readonly LogLane<Segment>[]): Promise<boolean> {
    const left = lanes.flatMap((lane) => lane.left(this.#isInFlight).map((row) => ({ lane, row })));
    if (left.length === 0) return false;
    const { database, spec } = this.#parts;
    const keys = [...new Set(left.map(({ row }) => row.event.key).filter((key) => key !== null))];
    const settings = { context: database.errorContext("looking for parked keys"), statementTimeoutMs: 2_000 };
    const closed = await transaction(database.pool, { ...settings, readOnly: true }, (session) =>
      closedKeys(session, database.tables, spec.name, keys),
    );
    const behind = left.filter(({ row }) => row.event.key !== null && closed.includes(row.event.key));
    for (const [lane, ofLane] of Map.groupBy(behind, (it) => it.lane)) {
      await this.#park(
        lane,
        ofLane.map(({ row }) => row),
      );
    }
    return behind.length < left.length;
  }

  async #park(lane: LogLane<Segment>, rows: readonly WindowRow<Segment>[]): Promise<void> {
    const { reading } = await this.#ready();
    reading.hasParked = true;
    const { database, kind, spec, table } = this.#parts;
    await parkOnTheWay({ database, kind, pipeline: spec.name, table }, lane, rows);
  }

  /** Lanes that read on without finding anything of theirs: their checkpoint must not stay behind for ever. */
  async #writeIdle(lanes: readonly LogLane<Segment>[]): Promise<void> {
    const nowMs = performance.now();
    const idle = lanes.filter((lane) => nowMs - lane.writtenAtMs >= CHECKPOINT_EVERY_MS);
    const { database, kind, spec } = this.#parts;
    await writeCheckpoints(database, spec.name, kind, idle, nowMs);
  }

  async #ready(): Promise<{ readonly scope: PendingScope; readonly reading: LogReading<Segment> }> {
    if (this.#scope === null || this.#reading === null) await this.prepare();
    if (this.#scope === null || this.#reading === null) {
      throw new RelayError("SCHEMA_MISSING", `${this.#parts.spec.name} is not prepared`);
    }
    return { scope: this.#scope, reading: this.#reading };
  }
}
