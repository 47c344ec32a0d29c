import { setTimeout as pauseMs } from "node:timers/promises";
import { crc32 } from "node:zlib";
import pg from "pg";
import { quoteTable } from "../../../src/postgres/identifiers.ts";
import { SeededRandom } from "../../../src/testing/simulator/seeded-random.ts";
import type { OutboxTable } from "../../e2e/outbox-tables.ts";

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
  readonly tables: readonly OutboxTable[];
  readonly types: readonly string[];
  readonly keys: number;
  readonly seed: number;
  readonly connections: number;
  /** Between the transactions of one connection. */
  readonly pauseMs: number;
}

/** An application that writes events on several connections, and remembers outside of the database what it wrote. */
export interface EventWriter {
  readonly diary: ReadonlyMap<string, Written>;
  readonly eras: number;
  stop(): Promise<void>;
}

const ROLLBACK_SHARE = 0.1;
const NULL_KEY_SHARE = 0.05;
const EVENTS_PER_KEY_MAX = 4;

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

  async writeUntilLost(random: SeededRandom, signal: AbortSignal): Promise<void> {
    const client = new pg.Client({ connectionString: this.#options.url, application_name: "writer" });
    client.on("error", () => {}); // a lost connection also rejects the statement
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

  async #eraOf(client: pg.Client): Promise<number> {
    const { rows } = await client.query<{ port: number }>("select inet_server_port() as port");
    const port = rows[0]!.port;
    if (!this.servers.includes(port)) this.servers.push(port);
    return this.servers.indexOf(port);
  }

  async #writeTransaction(client: pg.Client, era: number, random: SeededRandom): Promise<void> {
    const drafts: Draft[] = [];
    let end: Written["end"] = "rolled-back";
    try {
      await client.query("begin");
      await this.#insertEvents(client, era, random, drafts);
      if (random.chance(ROLLBACK_SHARE)) {
        await client.query("rollback");
        return;
      }
      end = "unknown";
      await client.query("commit");
      end = "committed";
    } finally {
      for (const { id, ...draft } of drafts) this.diary.set(id, { ...draft, end });
    }
  }

  /**
   * The lock on a key comes before its events, so that the order of a key's transactions is that of their inserts. Keys
   * are locked in one order by all, or the connections would deadlock each other.
   */
  async #insertEvents(client: pg.Client, era: number, random: SeededRandom, drafts: Draft[]): Promise<void> {
    const { keys: keyCount, tables } = this.#options;
    const keys = new Set(Array.from({ length: random.int(1, 3) }, () => random.int(1, keyCount)));
    for (const number of [...keys].sort((a, b) => a - b)) {
      const key = `key-${number}`;
      const events = random.int(1, EVENTS_PER_KEY_MAX);
      const { rows } = await client.query<{ last: string }>(
        "update e2e.aggregates set last_sequence = last_sequence + $2 where key = $1 returning last_sequence as last",
        [key, events],
      );
      const last = Number(rows[0]?.last);
      // One table per key: there is no order between tables.
      const table = tables[number % tables.length]!;
      for (let at = 1; at <= events; at += 1) {
        drafts.push(await this.#insertEvent(client, table, era, key, last - events + at, random));
      }
    }
    if (!random.chance(NULL_KEY_SHARE)) return;
    drafts.push(await this.#insertEvent(client, random.pick(tables), era, null, 0, random));
  }

  async #insertEvent(
    client: pg.Client,
    table: OutboxTable,
    era: number,
    key: string | null,
    sequence: number,
    random: SeededRandom,
  ): Promise<Draft> {
    const id = random.uuid();
    const type = random.pick(this.#options.types);
    const payload = JSON.stringify({ id, key, sequence, era });
    await client.query(
      `insert into ${quoteTable(table)} (id, aggregate_id, event_type, payload) values ($1, $2, $3, $4)`,
      [id, key, type, table.payload === "json" ? payload : Buffer.from(payload)],
    );
    return { id, key, sequence, type, era, crc: crc32(payload) };
  }
}

/** Whatever comes without a class 22, 23 or 42 is the server's or the network's state, not a fault of the statement. */
function isOutage(error: unknown): boolean {
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  return !/^(22|23|42)/.test(code);
}
