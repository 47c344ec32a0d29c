import pg from "pg";
import type { PostgresServer } from "../servers/postgres.ts";

const PREPARED = "prepared";

/**
 * The database `shop` of the pages: new for each page, or as another page left it. Its owner is no superuser, and the
 * role `relay` has what the page gives it.
 */
export class Shop {
  readonly #server: PostgresServer;
  #keepsRelay = false;

  private constructor(server: PostgresServer) {
    this.#server = server;
  }

  static async open(server: PostgresServer, isPrepared: boolean): Promise<Shop> {
    const shop = new Shop(server);
    await server.query(`do $$ begin
      if to_regrole('owner') is null then create role owner login createrole; end if; end $$`);
    await server.query(`create database shop owner owner ${isPrepared ? `template ${PREPARED}` : ""}`);
    if (isPrepared) await shop.#renameRelay("relay_of_prepared", "relay");
    shop.#keepsRelay = isPrepared;
    return shop;
  }

  /** Keeps the database as it is now for the pages that start from here. Nothing may be connected to it. */
  async keep(): Promise<void> {
    await this.#server.query(`create database ${PREPARED} template shop owner owner`);
    this.#keepsRelay = true;
  }

  /** As the owner, or as a superuser where the block says so in its first line. */
  async run(sql: string): Promise<void> {
    const user = /^-- as a superuser\b/i.test(sql) ? "postgres" : "owner";
    const client = new pg.Client({ connectionString: this.#server.databaseUrl("shop", user, "secret") });
    await client.connect();
    try {
      // One by one: ALTER SYSTEM runs in no transaction, and several statements at once are one.
      for (const statement of /^alter system/im.test(sql) ? sql.split(/;.*\n/) : [sql]) await client.query(statement);
    } finally {
      await client.end();
    }
    if (/^alter system/im.test(sql)) await this.#server.restart();
  }

  async query<Row extends pg.QueryResultRow>(sql: string): Promise<readonly Row[]> {
    return (await this.#server.query<Row>(sql, [], "shop")).rows;
  }

  async close(): Promise<void> {
    await this.#server.query(
      "select pg_drop_replication_slot(slot_name) from pg_replication_slots where database = 'shop'",
    );
    await this.#server.query("drop database shop with (force)");
    await this.#server.query("drop role if exists writer");
    if (this.#keepsRelay) await this.#renameRelay("relay", "relay_of_prepared");
    else await this.#server.query("drop role if exists relay");
  }

  /** Grants follow the role: so one database waits with its rights while another page makes a role of that name. */
  async #renameRelay(from: string, to: string): Promise<void> {
    await this.#server.query(`alter role ${from} rename to ${to}`);
  }
}
