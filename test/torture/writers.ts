import { setTimeout as dawdle } from "node:timers/promises";
import pg from "pg";
import { Chance } from "./chance.ts";

/** The tables of one torture. A key's row is locked before an event of it is written, so its order is defined. */
export function tablesSql(isPartitioned: boolean): string {
  const parts = [0, 1, 2].map(
    (rest) =>
      `create table torture_events_${rest} partition of torture_events for values with (modulus 3, remainder ${rest});`,
  );
  return `
create table torture_keys (key text primary key, n int not null default 0);
insert into torture_keys select 'k' || i from generate_series(1, ${KEYS}) i;
create table torture_events (
  id bigint generated always as identity, xid xid8 default pg_current_xact_id(),
  event_id uuid default gen_random_uuid(), event_key text not null, event_type text not null, payload text not null
) ${isPartitioned ? "partition by hash (event_key)" : ""};
create index on torture_events (id);
create index on torture_events (xid, id);
${isPartitioned ? parts.join("\n") : ""}
create table torture_checkpoints (
  reader text, lane int, position text not null, version int not null, primary key (reader, lane));`;
}

const KEYS = 24;

type Act = (writer: Writer) => Promise<void>;

/** Weighted by how often they stand here. */
const ACTS: readonly Act[] = [
  (it) => it.inTransaction(() => it.write()),
  (it) => it.inTransaction(() => it.write()),
  (it) => it.inTransaction(() => it.write()),
  (it) => it.inTransaction(() => it.write(), { lateMs: 60 }),
  (it) => it.inTransaction(() => it.write(), { lateMs: 60 }),
  (it) => it.inTransaction(() => it.write(), { lateMs: 1_500 }),
  (it) => it.inTransaction(() => it.write(), { earlyMs: 80 }),
  (it) => it.inTransaction(() => it.write(), { earlyMs: 80, lateMs: 40 }),
  (it) => it.inTransaction(() => it.write(), { earlyMs: 1_000 }),
  (it) => it.inTransaction(() => it.write(), { end: "rollback", lateMs: 30 }),
  (it) => it.inTransaction(() => it.writeWithSavepoints()),
  (it) => it.inTransaction(() => it.writeWithSavepoints(), { earlyMs: 40, lateMs: 40 }),
  (it) => it.inTransaction(() => it.write(it.chance.from(50, 600))),
  (it) => it.inTransaction(() => it.write(it.chance.from(50, 600)), { lateMs: 100 }),
  (it) => it.inTwoPhases(),
  (it) => it.inTwoPhases(),
];

interface TransactionOptions {
  /** How long the transaction has its number before it writes, at most. */
  readonly earlyMs?: number;
  /** How long it stays open after it wrote, at most. */
  readonly lateMs?: number;
  readonly end?: "commit" | "rollback";
}

/** One connection that writes in every way that a transaction can come late, until it is stopped. */
class Writer {
  readonly chance: Chance;
  readonly #url: string;
  readonly #name: string;
  readonly #isStopped: () => boolean;
  #client: pg.Client | null = null;
  #count = 0;

  constructor(url: string, name: string, seed: number, isStopped: () => boolean) {
    this.#url = url;
    this.#name = name;
    this.#isStopped = isStopped;
    this.chance = new Chance(seed);
  }

  async run(): Promise<void> {
    while (!this.#isStopped()) {
      try {
        await this.chance.one(ACTS)(this);
      } catch {
        // The server went away, or chose this transaction to end a deadlock.
        await this.#close();
        await dawdle(20);
      }
    }
    await this.#close();
  }

  async inTransaction(work: () => Promise<void>, options: TransactionOptions = {}): Promise<void> {
    const { earlyMs = 0, lateMs = 0, end = "commit" } = options;
    await this.#query("begin");
    if (earlyMs > 0) {
      await this.#query("select pg_current_xact_id()");
      await this.#dawdle(earlyMs);
    }
    await work();
    if (lateMs > 0) await this.#dawdle(lateMs);
    await this.#query(end);
  }

  async inTwoPhases(): Promise<void> {
    this.#count += 1;
    const name = `${this.#name} ${this.#count}`;
    await this.#query("begin");
    await this.write();
    await this.#query(`prepare transaction '${name}'`);
    await this.#dawdle(200);
    // Whoever survives a crash finds it where it was left.
    for (let isOver = false; !isOver; ) {
      try {
        await this.#query(`${this.chance.is(0.7) ? "commit" : "rollback"} prepared '${name}'`);
        isOver = true;
      } catch (error) {
        isOver = (error as { code?: string }).code === "42704";
        if (isOver) continue;
        await this.#close();
        await dawdle(20);
      }
    }
  }

  /** Some events of one key, each with the key's next number. */
  async write(events = 1): Promise<void> {
    const key = `k${this.chance.from(1, KEYS)}`;
    await this.#query(`with bumped as (update torture_keys set n = n + ${events} where key = '${key}' returning n)
      insert into torture_events (event_key, event_type, payload)
      select '${key}', 't', (n - ${events} + i)::text from bumped, generate_series(1, ${events}) i order by i`);
  }

  async writeWithSavepoints(): Promise<void> {
    await this.write();
    await this.#query("savepoint a");
    await this.write();
    await this.#query("rollback to a");
    await this.#query("savepoint b");
    await this.write();
    await this.#query("release b");
  }

  async #dawdle(mostMs: number): Promise<void> {
    await dawdle(this.chance.from(1, mostMs));
  }

  async #query(text: string): Promise<void> {
    if (this.#client === null) {
      this.#client = new pg.Client({ connectionString: this.#url, connectionTimeoutMillis: 2_000 });
      this.#client.on("error", () => {});
      await this.#client.connect();
    }
    await this.#client.query(text);
  }

  async #close(): Promise<void> {
    const client = this.#client;
    this.#client = null;
    await client?.end().catch(() => {});
  }
}

/** Writers at work. `stop` lets each finish what it began; what a crash left prepared is committed. */
export function startWriters(url: string, count: number, seed: number): { stop(): Promise<void> } {
  let isStopped = false;
  const running = Array.from({ length: count }, (_, index) =>
    new Writer(url, `writer ${seed + index}`, seed + index, () => isStopped).run(),
  );
  return {
    stop: async () => {
      isStopped = true;
      await Promise.all(running);
      await commitPrepared(url);
    },
  };
}

async function commitPrepared(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const { rows } = await client.query<{ gid: string }>(
    "select gid from pg_prepared_xacts where database = current_database()",
  );
  for (const { gid } of rows) await client.query(`commit prepared ${pg.escapeLiteral(gid)}`);
  await client.end();
}
