import { randomUUID } from "node:crypto";
import pg from "pg";
import { displayTable, quoteIdentifier, quoteLiteral, quoteTable, type TableName } from "../identifiers.ts";
import type { Database } from "../pool.ts";
import { fixSettingsSql } from "../session-settings.ts";
import { glance } from "../transaction.ts";
import { managedNames, WAKE_UP_LOCK } from "./managed-names.ts";

/** A response arrives quickly or not at all; polling continues meanwhile. */
const ANSWER_MS = 2_000;
/** Where notifications are not available, this is how long until the next check. */
const LOOK_AGAIN_MS = 60_000;

/**
 * Wakes an idle relay when an event is written. While armed it holds an exclusive lock, and only then do writers
 * notify: while the relay is awake, writers pay nothing. The order matters: arm, read once more, then wait. An event
 * written before arming is found by that read; an event written after it sends a notification.
 *
 * Notifications are best effort: keep a slow poll as well. Where they cannot work (another relay holds the lock, a
 * pooler is in between, the trigger is missing), arming returns false.
 */
export class WakeUpListener {
  readonly #database: Database;
  readonly #table: TableName;
  readonly #onNotify: () => void;
  #link: Link | null = null;
  #isArmed = false;
  #isClosed = false;
  #notBeforeMs = Number.NEGATIVE_INFINITY;
  /** One operation after the other: there is one connection. */
  #turn: Promise<unknown> = Promise.resolve();

  constructor(database: Database, table: TableName, onNotify: () => void) {
    this.#database = database;
    this.#table = table;
    this.#onNotify = onNotify;
  }

  /** True: from now on a write notifies. Never throws; false means that only polling is left. */
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
      const answer = await ask(link.client, armSql(link.oid, this.#triggerName()));
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

  /** Closes the connection, which releases the lock. Safe to repeat. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#inTurn(async () => {
      this.#isArmed = false;
      const link = this.#link;
      this.#link = null;
      // On a dead network the close gets no response; the operating system closes the connection later.
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

  #triggerName(): string {
    return managedNames(this.#table).ring;
  }

  /** Notifications may have been missed meanwhile, so this sends one wake-up. */
  #drop(): void {
    const link = this.#link;
    const wasArmed = this.#isArmed;
    this.#link = null;
    this.#isArmed = false;
    link?.client.end().catch(() => {});
    if (wasArmed && !this.#isClosed) this.#onNotify();
  }

  /** Checked on a pooled connection: most tables have no trigger and need no extra connection. */
  async #hasTrigger(): Promise<boolean> {
    const context = this.#database.errorContext("checking for the wake-up trigger", displayTable(this.#table));
    const text = `select 1 from pg_catalog.pg_trigger t where t.tgname = ${quoteLiteral(this.#triggerName())}
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
      if (this.#isArmed && this.#link?.client === client) this.#onNotify();
    });
    return { client, oid };
  }

  /**
   * False behind a pooler that shares the server's connection between transactions: it does not pass notifications on.
   */
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
      const context = this.#database.errorContext("testing the wake-up", displayTable(this.#table));
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

/** Reads one value under settings that end with the statement, since a pooler may pass the connection on. */
async function ask(client: pg.Client, text: string): Promise<string | null> {
  // The type definitions know only one result; several statements return a list.
  const results: unknown = await client.query({ text: `${fixSettingsSql()};${text}`, rowMode: "array" });
  return (results as pg.QueryArrayResult<(string | null)[]>[]).at(-1)?.rows[0]?.[0] ?? null;
}

function armSql(oid: string, ring: string): string {
  const table = `${quoteLiteral(oid)}::oid`;
  return `select case
    when not exists (select from pg_catalog.pg_class where oid = ${table}) then 'gone'
    when not exists (select from pg_catalog.pg_trigger t
      where t.tgrelid = ${table} and t.tgname = ${quoteLiteral(ring)} and t.tgenabled <> 'D') then 'missing'
    when pg_try_advisory_lock(${WAKE_UP_LOCK}, ${table}::int) then 'armed'
    else 'taken' end`;
}
