import type { Grant, LaneState, PipelineSpec, Run, RunRequest } from "../../../ports/queue-store.ts";
import { displayTable, quoteLiteral } from "../../../postgres/identifiers.ts";
import { laneStateOf } from "../../../postgres/lanes.ts";
import type { Database } from "../../../postgres/pool.ts";
import { SERVER_INCARNATION } from "../../../postgres/server-incarnation.ts";
import { timelineSql } from "../../../postgres/timeline.ts";
import { glance, openTransaction, type TransactionSettings, transaction } from "../../../postgres/transaction.ts";
import type { EventReader } from "../event-reader.ts";
import type { PendingScope } from "../pending-condition.ts";
import { PostgresRun } from "../postgres-run.ts";
import { runSql } from "../postgres-store.sql.ts";
import { RUN_SETTINGS } from "../postgres-store.ts";
import type { LogKind } from "./log-kind.ts";
import type { LogLane } from "./log-lane.ts";
import { closedKeys, parkedPositions } from "./parked.ts";

interface ReadingParts<Segment> {
  readonly database: Database;
  readonly kind: LogKind<Segment>;
  readonly spec: PipelineSpec;
  /** The table of the parked events. */
  readonly scope: PendingScope;
  readonly reader: EventReader;
}

/**
 * How long a check that found nothing parked stays valid. Within this process, parking and replaying report themselves.
 */
const PARKED_LOOK_MS = 10_000;

/** What a run reads besides the log itself: the lanes' rows and the parked events. */
export class LogReading<Segment> {
  /** False only when it is certain that nothing is parked. */
  hasParked = true;
  readonly #parts: ReadingParts<Segment>;
  #lookedAtMs = Number.NEGATIVE_INFINITY;

  constructor(parts: ReadingParts<Segment>) {
    this.#parts = parts;
  }

  /** The run's first statement: the owners of the lanes, and whether anything is parked. */
  async begin(grants: readonly Grant[], owned: readonly LogLane<Segment>[]): Promise<readonly LaneState[]> {
    const { database, scope } = this.#parts;
    const ofPipeline = `pipeline = ${quoteLiteral(scope.pipeline)}`;
    const lanes = grants.map(({ lane }) => lane).join(", ") || "null";
    const text = `select lane, owner, epoch, settled_batch, ${await timelineSql(database)},
  exists (select from ${scope.tables.parked} where ${ofPipeline}), ${SERVER_INCARNATION}
from ${scope.tables.lanes} where ${ofPipeline} and lane in (${lanes}) order by lane`;
    const context = database.errorContext("reading the lanes");
    const rows = await glance(database.pool, context, database.timeouts.readMs, text);
    if (rows.length > 0) this.#found(rows[0]?.[5] === "t");
    const isVoid = ({ isVoid, incarnation }: LogLane<Segment>) => isVoid || incarnation !== rows[0]?.[6];
    const voided = new Set(owned.filter(isVoid).map(({ grant }) => grant.lane));
    // A lane that must be taken over again is shown with another timeline, which makes the engine give it up.
    return rows.map((row) => laneStateOf(row, voided.has(Number(row[0])) ? `${row[4]} before a crash` : row[4]));
  }

  async looksForParked(): Promise<boolean> {
    const { database, scope } = this.#parts;
    if (!this.hasParked && performance.now() - this.#lookedAtMs < PARKED_LOOK_MS) return false;
    const text = `select exists (select from ${scope.tables.parked} where pipeline = ${quoteLiteral(scope.pipeline)})`;
    const context = database.errorContext("searching for parked events");
    const [row] = await glance(database.pool, context, database.timeouts.readMs, text);
    this.#found(row?.[0] === "t");
    return this.hasParked;
  }

  #found(hasParked: boolean): void {
    this.hasParked = hasParked;
    this.#lookedAtMs = performance.now();
  }

  /** Opens the parked events. It shows none of a lane that has not read everything its checkpoint lists. */
  async openParked({ exceptKeys, exceptTypes }: RunRequest, owned: readonly LogLane<Segment>[]): Promise<Run | null> {
    const { database, reader, scope, spec } = this.#parts;
    const lanes = owned.filter((lane) => !lane.isBehind).map(({ grant }) => grant.lane);
    if (lanes.length === 0) return null;
    const leave = await database.runs.enter();
    try {
      const settings: TransactionSettings = {
        context: database.errorContext("reading parked events", displayTable(scope.shape.name)),
        statementTimeoutMs: database.timeouts.readMs,
        idleTimeoutMs: database.timeouts.idleInRunMs,
        isolation: "repeatable read",
        readOnly: true,
        settings: RUN_SETTINGS,
      };
      const transaction = await openTransaction(database.pool, settings, "select 1");
      const filter = { rows: "main" as const, lanes, holds: { ids: true, keys: true }, exceptKeys, exceptTypes };
      return new PostgresRun({
        shape: scope.shape,
        reader,
        lanes: [],
        transaction,
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

  readonly findParked = async (ids: readonly string[], keys: readonly string[]) => {
    const { database, scope } = this.#parts;
    const settings = {
      context: database.errorContext("searching for parked events"),
      statementTimeoutMs: database.timeouts.readMs,
      readOnly: true,
    };
    return await transaction(database.pool, settings, async (session) => ({
      places: await parkedPositions(session, scope.tables, scope.pipeline, ids),
      keys: new Set(await closedKeys(session, scope.tables, scope.pipeline, keys)),
    }));
  };
}
