import { randomUUID } from "node:crypto";
import pg from "pg";
import { displayTable, quoteIdentifier, quoteLiteral, quoteTable, type TableName } from "../identifiers.ts";
import type { Database } from "../pool.ts";
import { fixSettingsSql } from "../session-settings.ts";
import { glance } from "../transaction.ts";
import { DOORBELL_LOCK, managedNames } from "./managed-names.ts";

/** Answers come at once or not at all; the polls go on meanwhile. */
const ANSWER_MS = 2_000;
/** Where there is no bell, it is not asked for again at every poll. */
const LOOK_AGAIN_MS = 60_000;

/**
 * Wakes an idle relay when an event is written. While it is armed it holds a lock alone, and only then do writers
 * notify: awake, nobody pays for it. The order is the whole trick: arm, read once more, then wait. Whoever wrote before
 * is seen by that reading, whoever writes after it rings.
 *
 * It is a help and no promise: keep a slow poll beside it. Where it cannot work (another relay sleeps, a pooler stands
 * between, the trigger is not there) arming says no.
 */
export class Doorbell {
  readonly #database: Database;
  readonly #table: TableName;
  readonly #onRing: () => void;
  #link: Link | null = null;
  #isArmed = false;
  #isClosed = false;
  #notBeforeMs = Number.NEGATIVE_INFINITY;
  /** One thing after the other: there is one connection. */
  #turn: Promise<unknown> = Promise.resolve();

  constructor(database: Database, table: TableName, onRing: () => void) {
    this.#database = database;
    this.#table = table;
    this.#onRing = onRing;
  }

  /** True: from now on a write rings. Never throws; false means that polls have to do. */
  arm(): Promise<boolean> {
    return this.#inTurn(async () => {
      if (this.#isClosed || performance.now() < this.#notBeforeMs) return false;
      if (this.#isArmed) return true;
      if (this.#link === null && !(await this.#hasTrigger())) {
        this.#notBeforeMs = performance.now() + LOOK_AGAIN_MS;
        return false;
      }
      this.#link ??= await this.#connect();
      const link = this.#link;
      if (link === null) return false;
      const answer = await ask(link.client, armSql(link.oid, this.#ring()));
      if (answer === "missing") this.#notBeforeMs = performance.now() + LOOK_AGAIN_MS;
      if (answer === "gone") this.#drop();
      this.#isArmed = answer === "armed" && this.#link === link;
      return this.#isArmed;
    });
  }

  /** Writers stop notifying. */
  async disarm(): Promise<void> {
    await this.#inTurn(async () => {
      if (!this.#isArmed) return false;
      this.#isArmed = false;
      await this.#link?.client.query("select pg_catalog.pg_advisory_unlock_all()");
      return true;
    });
  }

  /** Ends the connection, and with it the lock. Legal to repeat. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#inTurn(async () => {
      this.#isArmed = false;
      const link = this.#link;
      this.#link = null;
      // A dead network answers nothing; then the operating system ends the connection some day.
      const waited = Promise.withResolvers<void>();
      const timer = setTimeout(waited.resolve, ANSWER_MS);
      await Promise.race([link?.client.end(), waited.promise]).finally(() => clearTimeout(timer));
      return true;
    });
  }

  #inTurn(work: () => Promise<boolean>): Promise<boolean> {
    const result = this.#turn.then(work).catch(() => {
      this.#drop();
      return false;
    });
    this.#turn = result;
    return result;
  }

  #ring(): string {
    return managedNames(this.#table).ring;
  }

  /** Nobody knows what was missed meanwhile, so it rings once. */
  #drop(): void {
    const link = this.#link;
    const wasArmed = this.#isArmed;
    this.#link = null;
    this.#isArmed = false;
    link?.client.end().catch(() => {});
    if (wasArmed && !this.#isClosed) this.#onRing();
  }

  /** Asked on a connection that is there anyway: most tables have none, and need no connection for it. */
  async #hasTrigger(): Promise<boolean> {
    const context = this.#database.errorContext("looking for the doorbell", displayTable(this.#table));
    const text = `select 1 from pg_catalog.pg_trigger t where t.tgname = ${quoteLiteral(this.#ring())}
      and t.tgenabled <> 'D' and t.tgrelid = to_regclass(${quoteLiteral(quoteTable(this.#table))})`;
    return (await glance(this.#database.pool, context, ANSWER_MS, text)).length > 0;
  }

  async #connect(): Promise<Link | null> {
    const client = new pg.Client({
      ...this.#database.pool.options,
      password: this.#database.pool.options.password,
      application_name: `${this.#database.pool.options.application_name ?? "outbox-relay"} doorbell`,
      query_timeout: ANSWER_MS,
    });
    let link: Link | null = null;
    const lost = () => {
      if (link !== null && this.#link === link) this.#drop();
    };
    client.on("error", lost);
    client.on("end", lost);
    try {
      await client.connect();
      link = await this.#listen(client);
    } finally {
      if (link === null) client.end().catch(() => {});
    }
    return link;
  }

  async #listen(client: pg.Client): Promise<Link | null> {
    const oid = await ask(client, `select to_regclass(${quoteLiteral(quoteTable(this.#table))})::oid`);
    if (oid === null) return null;
    const channel = `outbox_relay_${oid}`;
    await client.query(`listen ${quoteIdentifier(channel)}`);
    if (!(await this.#hears(client, channel))) {
      this.#notBeforeMs = performance.now() + LOOK_AGAIN_MS;
      return null;
    }
    client.on("notification", () => {
      if (this.#isArmed && this.#link?.client === client) this.#onRing();
    });
    return { client, oid };
  }

  /** Behind a pooler that gives the server's connection to others between transactions nothing is heard. */
  async #hears(client: pg.Client, channel: string): Promise<boolean> {
    const token = randomUUID();
    const heard = Promise.withResolvers<boolean>();
    const listener = ({ payload }: pg.Notification) => {
      if (payload === token) heard.resolve(true);
    };
    client.on("notification", listener);
    const timer = setTimeout(() => heard.resolve(false), ANSWER_MS);
    try {
      const { pool } = this.#database;
      const context = this.#database.errorContext("trying the doorbell", displayTable(this.#table));
      await glance(pool, context, ANSWER_MS, `select pg_notify('${channel}', '${token}')`);
      return await heard.promise;
    } finally {
      clearTimeout(timer);
      client.off("notification", listener);
    }
  }
}

interface Link {
  readonly client: pg.Client;
  readonly oid: string;
}

/** One value, under settings that end with the statement: a pooler may give the connection to others. */
async function ask(client: pg.Client, text: string): Promise<string | null> {
  // The types know one result only; several statements give a list.
  const results: unknown = await client.query({ text: `${fixSettingsSql()};${text}`, rowMode: "array" });
  return (results as pg.QueryArrayResult<(string | null)[]>[]).at(-1)?.rows[0]?.[0] ?? null;
}

function armSql(oid: string, ring: string): string {
  const table = `${quoteLiteral(oid)}::oid`;
  return `select case
    when not exists (select from pg_catalog.pg_class where oid = ${table}) then 'gone'
    when not exists (select from pg_catalog.pg_trigger t
      where t.tgrelid = ${table} and t.tgname = ${quoteLiteral(ring)} and t.tgenabled <> 'D') then 'missing'
    when pg_try_advisory_lock(${DOORBELL_LOCK}, ${table}::int) then 'armed'
    else 'taken' end`;
}
