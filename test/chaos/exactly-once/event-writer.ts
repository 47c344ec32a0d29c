import { setTimeout as pauseMs } from "node:timers/promises";
import { crc32 } from "node:zlib";
import pg from "pg";
import { SeededRandom } from "../../../src/testing/simulator/seeded-random.ts";
import type { ProvedOutbox } from "./proved-outbox.ts";

/** What the writer knows of an event, whatever became of the database since. */
export interface Written {
  readonly key: string | null;
  /** Counts the events of a key; the database's failover may set it back. */
  readonly sequence: number;
  /** The topic. */
  readonly type: string;
  readonly crc: number;
  /** Counts the database servers that were written to: a promoted standby begins a new era. */
  readonly era: number;
  /** `unknown`: the connection was lost when the commit was under way. */
  readonly end: "committed" | "rolled-back" | "unknown";
}

export interface EventWriterOptions {
  readonly url: string;
  readonly outbox: ProvedOutbox;
  readonly types: readonly string[];
  readonly keys: number;
  readonly seed: number;
  readonly connections: number;
  /** Between the transactions of one connection. */
  readonly pauseMs: number;
  /** One more type that some keys have. */
  readonly rare?: { readonly type: string; readonly keys: number };
  /** Transactions that number themselves early, commit late or take a part of their work back. */
  readonly isAwkward?: boolean;
}

/** An application that writes events on several connections, and remembers outside of the database what it wrote. */
export interface EventWriter {
  readonly diary: ReadonlyMap<string, Written>;
  readonly eras: number;
  stop(): Promise<void>;
  /** At least one more event, after the stop. */
  writeLast(): Promise<void>;
}

const ROLLBACK_SHARE = 0.1;
const NULL_KEY_SHARE = 0.05;
const EVENTS_PER_KEY_MAX = 4;
/** Of awkward transactions. */
const EARLY_NUMBER_SHARE = 0.3;
const SAVEPOINT_SHARE = 0.3;
const LATE_COMMIT_SHARE = 0.03;
const LATE_COMMIT_MS_MAX = 1_500;

export function startEventWriter(options: EventWriterOptions): EventWriter {
  const stopping = new AbortController();
  const writer = new Writer(options);
  const random = new SeededRandom(options.seed);
  const loops = Array.from({ length: options.connections }, async () => {
    const draw = random.fork();
    while (!stopping.signal.aborted) {
      await writer.writeUntilLost(draw, stopping.signal);
      if (!stopping.signal.aborted) await pauseMs(50);
    }
  });
  return {
    diary: writer.diary,
    get eras() {
      return writer.servers.length;
    },
    async stop() {
      stopping.abort();
      await Promise.all(loops);
    },
    writeLast: () => writer.writeOnce(random),
  };
}

type Draft = { readonly id: string } & Omit<Written, "end">;

class Writer {
  readonly diary = new Map<string, Written>();
  readonly servers: number[] = [];
  readonly #options: EventWriterOptions;

  constructor(options: EventWriterOptions) {
    this.#options = options;
  }

  /** Until something is committed. */
  async writeOnce(random: SeededRandom): Promise<void> {
    const client = this.#newClient();
    try {
      await client.connect();
      const era = await this.#eraOf(client);
      while ((await this.#writeTransaction(client, era, random)) === 0);
    } finally {
      await client.end();
    }
  }

  async writeUntilLost(random: SeededRandom, signal: AbortSignal): Promise<void> {
    const client = this.#newClient();
    try {
      await client.connect();
      const era = await this.#eraOf(client);
      while (!signal.aborted) {
        await this.#writeTransaction(client, era, random);
        await pauseMs(this.#options.pauseMs);
      }
    } catch (error) {
      if (!isOutage(error)) throw error;
    } finally {
      await client.end().catch(() => {});
    }
  }

  #newClient(): pg.Client {
    const client = new pg.Client({ connectionString: this.#options.url, application_name: "writer" });
    client.on("error", () => {}); // a lost connection also rejects the statement
    return client;
  }

  async #eraOf(client: pg.Client): Promise<number> {
    const { rows } = await client.query<{ port: number }>("select inet_server_port() as port");
    const port = rows[0]!.port;
    if (!this.servers.includes(port)) this.servers.push(port);
    return this.servers.indexOf(port);
  }

  /** Returns how many events were committed. */
  async #writeTransaction(client: pg.Client, era: number, random: SeededRandom): Promise<number> {
    const draw = this.#options.isAwkward ? random : null;
    const drafts: Draft[] = [];
    let end: Written["end"] = "rolled-back";
    try {
      await client.query("begin");
      // A number from before the lock: the order of numbers then contradicts the order of the key.
      if (draw?.chance(EARLY_NUMBER_SHARE)) await client.query("select pg_current_xact_id()");
      await this.#insertEvents(client, era, random, drafts);
      if (draw?.chance(LATE_COMMIT_SHARE)) await pauseMs(draw.between(0, LATE_COMMIT_MS_MAX));
      if (random.chance(ROLLBACK_SHARE)) {
        await client.query("rollback");
        return 0;
      }
      end = "unknown";
      await client.query("commit");
      end = "committed";
      return drafts.length;
    } finally {
      this.#note(drafts, end);
    }
  }

  #note(drafts: readonly Draft[], end: Written["end"]): void {
    for (const { id, ...draft } of drafts) this.diary.set(id, { ...draft, end });
  }

  /**
   * The lock on a key comes before its events, so that the order of a key's transactions is that of their inserts. Keys
   * are locked in one order by all, or the connections would deadlock each other.
   */
  async #insertEvents(client: pg.Client, era: number, random: SeededRandom, drafts: Draft[]): Promise<void> {
    const { keys: keyCount, outbox, isAwkward } = this.#options;
    const keys = new Set(Array.from({ length: random.int(1, 3) }, () => random.int(1, keyCount)));
    for (const number of [...keys].sort((a, b) => a - b)) {
      const insert = (into: Draft[]) => this.#insertEventsOf(client, number, era, random, into);
      if (isAwkward && random.chance(SAVEPOINT_SHARE)) await this.#insertTentatively(client, random, drafts, insert);
      else await insert(drafts);
    }
    if (!random.chance(NULL_KEY_SHARE)) return;
    const at = random.int(0, outbox.tables.length - 1);
    drafts.push(await this.#insertEvent(client, at, { key: null, sequence: 0, era }, random));
  }

  /** Behind a savepoint that is kept or given up, with the lock of the key. */
  async #insertTentatively(
    client: pg.Client,
    random: SeededRandom,
    drafts: Draft[],
    insert: (into: Draft[]) => Promise<void>,
  ): Promise<void> {
    const isKept = random.chance(0.5);
    await client.query("savepoint attempt");
    const tried: Draft[] = [];
    try {
      await insert(tried);
    } catch (error) {
      this.#note(tried, "rolled-back");
      throw error;
    }
    await client.query(isKept ? "release savepoint attempt" : "rollback to savepoint attempt");
    if (isKept) drafts.push(...tried);
    else this.#note(tried, "rolled-back");
  }

  async #insertEventsOf(
    client: pg.Client,
    number: number,
    era: number,
    random: SeededRandom,
    drafts: Draft[],
  ): Promise<void> {
    const key = `key-${number}`;
    const events = random.int(1, EVENTS_PER_KEY_MAX);
    const { rows } = await client.query<{ last: string }>(
      "update e2e.aggregates set last_sequence = last_sequence + $2 where key = $1 returning last_sequence as last",
      [key, events],
    );
    const last = Number(rows[0]?.last);
    // One table per key: there is no order between tables.
    const at = number % this.#options.outbox.tables.length;
    for (let count = 1; count <= events; count += 1) {
      drafts.push(await this.#insertEvent(client, at, { key, sequence: last - events + count, era }, random));
    }
  }

  #typesOf(key: string | null): readonly string[] {
    const { rare, types } = this.#options;
    const isRare = rare !== undefined && key !== null && Number(key.slice("key-".length)) <= rare.keys;
    return isRare ? [...types, rare.type] : types;
  }

  async #insertEvent(
    client: pg.Client,
    at: number,
    event: Pick<Draft, "key" | "sequence" | "era">,
    random: SeededRandom,
  ): Promise<Draft> {
    const id = random.uuid();
    const type = random.pick(this.#typesOf(event.key));
    const payload = JSON.stringify({ id, ...event });
    const draft = { id, ...event, type, crc: crc32(payload) };
    await this.#options.outbox.insert(client, at, { ...draft, payload });
    return draft;
  }
}

/** Whatever comes without a class 22, 23 or 42 is the server's or the network's state, not a fault of the statement. */
function isOutage(error: unknown): boolean {
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  return !/^(22|23|42)/.test(code);
}
