import {
  type EventSource,
  eventSources,
  type OperationTarget,
  operationReadSettings,
} from "../operations/events/event-source.ts";
import { readLogShape, shapedLogEvents } from "../operations/logs/log-events.ts";
import { readStatus } from "../operations/pipelines/status.ts";
import { parseTableName, quoteArray, quoteLiteral } from "../postgres/identifiers.ts";
import { type Database, openDatabase } from "../postgres/pool.ts";
import { statement } from "../postgres/transaction.ts";
import type { SourceLookup } from "./arrival-book.ts";
import { MAIN_DESTINATION } from "./destination-wire.ts";

/** Backlog and relays according to the database. */
export interface ShopFigure {
  /** Events that are not delivered yet, for any reason. */
  readonly waiting: number;
  /** Age of the oldest pending event; 0 without one. */
  readonly oldestMs: number;
  readonly delivered: number;
  readonly deadLetters: number;
  /** Number of finished plans that replayed or discarded events. */
  readonly plansDone: number;
  /** Number of lanes by the name of the relay. */
  readonly lanes: ReadonlyMap<string, number>;
}

/** Reads the tables of the shop and of the relay as their owner. */
export class ShopFigures {
  readonly #target: OperationTarget;

  constructor(url: string) {
    this.#target = { database: openDatabase({ url, applicationName: "outbox-relay dev" }), columns: {} };
  }

  get #database(): Database {
    return this.#target.database;
  }

  async read(): Promise<ShopFigure> {
    const { lanes, replayItems, replayPlans } = this.#database.tables;
    const { instances, pipelines } = await readStatus(this.#target);
    const [totals] = await this.#rows(`select
      (select coalesce(sum(published_total), 0) from ${lanes}),
      (select count(*) from ${replayPlans} p where p.state = 'done'
        and exists (select from ${replayItems} i where i.plan = p.id and i.state = 'done'))`);
    return {
      waiting: pipelines.reduce((sum, { pending }) => sum + (pending ?? 0), 0),
      oldestMs: Math.max(0, ...pipelines.map(({ oldestAgeMs }) => oldestAgeMs ?? 0)),
      delivered: Number(totals?.[0]),
      deadLetters: pipelines.reduce((sum, { deadLetters }) => sum + deadLetters, 0),
      plansDone: Number(totals?.[1]),
      lanes: new Map(instances.map(({ name, lanes: owned }) => [name, owned])),
    };
  }

  /** Looks up events of one line, such as `orders.outbox` or `shipping.outbox@search`. */
  async lookUp(line: string, ids: readonly string[]): Promise<SourceLookup> {
    const [table = "", subscriber] = line.split("@");
    const pipeline = `${line}->${subscriber ?? MAIN_DESTINATION}`;
    const source =
      subscriber === undefined ? (await eventSources(this.#target, table)).usable[0] : await this.#log(table, pipeline);
    const lanes = await this.#rows(
      `select lane from ${this.#database.tables.lanes} where pipeline = ${quoteLiteral(pipeline)} limit 1`,
    );
    // No relay has read it yet.
    if (source === undefined || lanes.length === 0) return { waiting: new Set(ids), discarded: new Set() };
    const { givenUp, table: shape, waiting } = source;
    const wanted = quoteArray(ids);
    const there = await this.#rows(`select ${shape.id}::text from ${shape.quotedName} t
      where ${shape.id} = any(${wanted}::text[]::${shape.idType}[]) and ${givenUp === null ? waiting : `(${waiting} or ${givenUp})`}`);
    const gone = await this.#rows(`select original_event_id from ${this.#database.tables.failedEvents}
      where original_event_id = any(${wanted}::text[]) and resolution = 'discarded'`);
    const discarded = new Set(gone.map(([id]) => id ?? ""));
    // An Open Outbox row stays dead when it was discarded.
    const waits = there.map(([id]) => id ?? "").filter((id) => !discarded.has(id));
    return { waiting: new Set(waits), discarded };
  }

  close(): Promise<void> {
    return this.#database.close();
  }

  async #log(table: string, pipeline: string): Promise<EventSource> {
    const shape = await readLogShape(this.#target, parseTableName(table), "managed");
    return await shapedLogEvents(this.#database, shape, [pipeline]);
  }

  #rows(sql: string) {
    return statement(this.#database.pool, operationReadSettings(this.#database, "watching the demo"), sql);
  }
}
