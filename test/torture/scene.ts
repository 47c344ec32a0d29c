import { type Database, openDatabase } from "../../src/postgres/pool.ts";
import { statement } from "../../src/postgres/transaction.ts";
import { tailKind } from "../../src/sources/postgres/tail/tail-kind.ts";
import { type Delivered, type ReadableLog, TortureReader } from "./readers.ts";
import { verdict } from "./verdict.ts";
import { startWriters, tablesSql } from "./writers.ts";

export interface SceneOptions {
  /** Where the server is, also after a failover. */
  readonly url: string;
  readonly seed: number;
  readonly writers?: number;
  readonly isPartitioned?: boolean;
  /** How each reader reads; the difference of snapshots unless told otherwise. */
  readonly logOf?: (database: Database, laneCount: number) => ReadableLog<unknown>;
}

export interface SceneResult {
  readonly written: number;
  readonly restarts: number;
  readonly wrong: readonly string[];
}

/** Lanes of each reader. */
const READERS = [1, 3, 4];

/** Writers and readers at work on one table. */
export class Scene {
  readonly #database: Database;
  readonly #options: SceneOptions;
  readonly #readers: readonly TortureReader<unknown>[];
  #writers: { stop(): Promise<void> } | null = null;
  #reading: Promise<unknown> = Promise.resolve();
  #isStopped = false;
  #goesToTheEnd = true;

  constructor(options: SceneOptions) {
    this.#options = options;
    this.#database = openDatabase({ url: options.url, connectionsMax: 6 });
    const logOf = options.logOf ?? differenceLog;
    this.#readers = READERS.map((laneCount, index) => {
      const log = logOf(this.#database, laneCount);
      return new TortureReader({
        name: `reader ${index}`,
        laneCount,
        log,
        database: this.#database,
        seed: options.seed + 100 + index,
      });
    });
  }

  async start(): Promise<void> {
    await this.#rows(tablesSql(this.#options.isPartitioned ?? false));
    const { url, writers = 10, seed } = this.#options;
    this.#writers = startWriters(url, writers, seed);
    this.#reading = Promise.all(
      this.#readers.map((reader) =>
        reader.run(
          () => this.#isStopped,
          () => this.#goesToTheEnd,
        ),
      ),
    );
    this.#reading.catch(() => {});
  }

  /** Throws what ended a reader, if one has ended. */
  async requireReading(): Promise<void> {
    await Promise.race([this.#reading, Promise.resolve()]);
  }

  /** Whether something of the kind is wrong by now. What is not read yet counts as lost only at the end. */
  hasFound(wanted: RegExp): boolean {
    return this.#readers.some((reader) => verdict(reader.delivered(), new Map()).some((what) => wanted.test(what)));
  }

  get delivered(): number {
    return Math.min(...this.#readers.map((reader) => reader.delivered().length));
  }

  /** Lets the writers finish and the readers come to the end, and compares. */
  async finish(): Promise<SceneResult> {
    await this.#writers?.stop();
    this.#isStopped = true;
    await this.#reading;
    const written = await this.#written();
    const wrong = this.#readers.flatMap((reader) =>
      verdict(reader.delivered(), written).map((what) => `${reader.name}: ${what}`),
    );
    return { written: written.size, restarts: this.#readers.reduce((sum, { restarts }) => sum + restarts, 0), wrong };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#goesToTheEnd = false;
    this.#isStopped = true;
    await this.#writers?.stop().catch(() => {});
    await this.#reading.catch(() => {});
    await this.#rows("drop table torture_keys, torture_events, torture_checkpoints").catch(() => {});
    await this.#database.close();
  }

  async #written(): Promise<ReadonlyMap<number, Delivered>> {
    const rows = await this.#rows("select id, event_key, payload from torture_events order by id");
    return new Map(
      rows.map((row) => {
        const position = Number(row[0]);
        return [position, { position, key: row[1] ?? "", n: Number(row[2]) }];
      }),
    );
  }

  async #rows(text: string) {
    const context = this.#database.errorContext("the torture's own look");
    return await statement(this.#database.pool, { context, statementTimeoutMs: 20_000 }, text);
  }
}

/** What a kind of log has to know of the tortured table. */
export function tortureLog(database: Database, lanes: number) {
  const spec = { name: "torture", types: null, lanes, attemptsMax: 1, payloadBytesMax: 1_000, headersMax: 10 };
  const reference = { schema: "public", table: "torture_events" };
  return { database, reference, columns: {}, spec, start: "beginning" } as const;
}

export function differenceLog(database: Database, lanes: number): ReadableLog<unknown> {
  return tailKind(tortureLog(database, lanes)) as ReadableLog<unknown>;
}
