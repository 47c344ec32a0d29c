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
import { backlogOf } from "../counted-table.ts";
import { EventReader } from "../event-reader.ts";
import { claimHeads } from "../heads.ts";
import type { PendingScope } from "../pending-condition.ts";
import { probeSql } from "../postgres-store.sql.ts";
import { readUnsettled } from "../read-unsettled.ts";
import { reviewHolds } from "../review-holds.ts";
import { readCheckpoints, requireSameServer, takeCheckpoints, writeCheckpoints } from "./checkpoints.ts";
import type { WindowRow } from "./lane-window.ts";
import type { LogKind, LogPosition, PassRequest } from "./log-kind.ts";
import { LogLane } from "./log-lane.ts";
import { LogReading } from "./log-reading.ts";
import { LogRun } from "./log-run.ts";
import { settleLog } from "./log-settle.ts";
import { parkDuringRun } from "./park-during-run.ts";
import { closedKeys } from "./parked.ts";
import { parkedShape } from "./parked-shape.ts";
import type { WakeUp } from "./wake-up.ts";

interface LogStoreParts<Segment> {
  readonly database: Database;
  /** What the pipeline reads, for messages and dead letters. */
  readonly table: TableName;
  readonly kind: LogKind<Segment>;
  readonly spec: PipelineSpec;
  /** Notifies when something is written; null without notifications. */
  readonly wakeUp: WakeUp | null;
}

/** How long the checkpoint of a lane that delivers nothing can lag behind its reading. */
const CHECKPOINT_EVERY_MS = 1_000;

/**
 * One pipeline's view of a log. It reads by position and marks nothing. Events that must wait are parked in a table of
 * their own, which is then read like any queue.
 *
 * The order of one key rests on two rules: a row is shown only if no older row of its key is parked or held, and the
 * checkpoint passes a row only once the row is delivered or parked.
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
    await requireSameServer(database, spec.name);
    await kind.prepare();
    const lanes = Math.min(spec.lanes, kind.lanesMax ?? spec.lanes);
    const laneCount = await transaction(database.pool, writeSettings(database, "preparing the pipeline"), (session) =>
      registerPipeline(session, database, { name: spec.name, source: table, lanes, takes: spec.types }),
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
      const context = database.errorContext("searching for parked events");
      const rows = await glance(database.pool, context, database.timeouts.readMs, probeSql(scope, filter));
      if (rows.length > 0) return true;
    }
    await this.#writeIdle(lanes);
    if (await kind.probe(this.#request(lanes))) return true;
    // The notification says that something was written, but not for which lane: only the owner of all lanes can rely on
    // it.
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

  async readUnsettled(ids: readonly string[]) {
    const { scope } = await this.#ready();
    const { database, kind, spec } = this.#parts;
    const read = ids.flatMap((id) => this.#waiting(id) ?? []);
    const parked = await readUnsettled(database, scope, this.#reader, spec.payloadBytesMax, ids);
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
    const { rules, reporter } = await takenTypes(database, table);
    if (rules === null || (reporter ?? spec.name) !== spec.name) return [];
    return await kind.unrouted(rules);
  }

  async backlog(): Promise<Backlog> {
    const scope = await this.#counted();
    const { database, kind, spec } = this.#parts;
    const parked = await backlogOf(database, scope, "main");
    const heads = new Map<number, LogPosition<Segment>>();
    let done = 0;
    for (const { lane, checkpoint } of await readCheckpoints(database, spec.name, kind)) {
      const own = this.#lanes.get(lane);
      heads.set(lane, own?.window.low ?? checkpoint.place);
      done += (own?.ahead() ?? checkpoint.ahead).length;
    }
    const behindDead = await this.#behindTheDead();
    const log = await kind.backlog({ heads, laneCount: scope.laneCount }, BACKLOG_EXACT_MAX + 1);
    const ages = [parked.oldestAgeMs, log.oldestAgeMs].filter((age) => age !== null);
    const pending = parked.pending + Math.max(0, log.pending - done - behindDead);
    return {
      pending,
      isEstimate: parked.isEstimate || log.isEstimate,
      oldestAgeMs: ages.length === 0 || pending === 0 ? null : Math.max(...ages),
      behindDead: parked.behindDead + behindDead,
      dead: parked.dead,
      ...(heads.size < scope.laneCount ? { hasBegun: false } : {}),
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

  /** Rows in memory whose key waits behind a dead letter: the next run parks them. */
  async #behindTheDead(): Promise<number> {
    const waiting = [...this.#lanes.values()].flatMap(({ window }) => window.allWaiting());
    if (waiting.length === 0) return 0;
    const { database, spec } = this.#parts;
    const text = `select event_key from ${database.tables.holds} where pipeline = ${quoteLiteral(spec.name)}
      and state = 'dead' and parks and event_key is not null`;
    const context = database.errorContext("counting pending events");
    const rows = await glance(database.pool, context, database.timeouts.readMs, text);
    const keys = new Set(rows.map((row) => row[0]));
    return waiting.filter(({ event }) => keys.has(event.key)).length;
  }

  /**
   * Whether a run would show something that was read before. Rows behind parked events are parked at once: without new
   * rows there is no run to do it, and the checkpoint would stop in front of them.
   */
  async #hasLeft(lanes: readonly LogLane<Segment>[]): Promise<boolean> {
    const left = lanes.flatMap((lane) => lane.left(this.#isInFlight).map((row) => ({ lane, row })));
    if (left.length === 0) return false;
    const { database, spec } = this.#parts;
    const keys = [...new Set(left.map(({ row }) => row.event.key).filter((key) => key !== null))];
    const settings = { context: database.errorContext("searching for parked keys"), statementTimeoutMs: 2_000 };
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
    await parkDuringRun({ database, kind, pipeline: spec.name, table }, lane, rows);
  }

  /** Writes the checkpoints of lanes that read on without finding events of theirs, so that they do not lag forever. */
  async #writeIdle(lanes: readonly LogLane<Segment>[]): Promise<void> {
    const nowMs = performance.now();
    const idle = lanes.filter((lane) => nowMs - lane.writtenAtMs >= CHECKPOINT_EVERY_MS);
    const { database, kind, spec } = this.#parts;
    await writeCheckpoints(database, spec.name, kind, idle, nowMs);
  }

  /** A reader that only counts registers nothing: the relay that serves the pipeline stores its type filter. */
  async #counted(): Promise<PendingScope> {
    if (this.#scope !== null) return this.#scope;
    const { database, spec, table } = this.#parts;
    await requireSchema(database);
    await requireSameServer(database, spec.name);
    const { lanes: laneCount, name: pipeline, types } = spec;
    return { shape: parkedShape(database, pipeline, table), tables: database.tables, pipeline, types, laneCount };
  }

  async #ready(): Promise<{ readonly scope: PendingScope; readonly reading: LogReading<Segment> }> {
    if (this.#scope === null || this.#reading === null) await this.prepare();
    if (this.#scope === null || this.#reading === null) {
      throw new RelayError("SCHEMA_MISSING", `${this.#parts.spec.name} is not prepared`);
    }
    return { scope: this.#scope, reading: this.#reading };
  }
}
