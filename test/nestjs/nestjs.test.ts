import "reflect-metadata";
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { DynamicModule } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import {
  OutboxHealthIndicator,
  OutboxModule,
  type OutboxModuleOptions,
  OutboxRelay,
  OutboxService,
} from "../../src/nestjs/index.ts";
import { outboxTableSql } from "../../src/outbox/index.ts";
import { openPrisma } from "../handles/prisma.ts";
import { openTypeOrmManager } from "../handles/typeorm.ts";
import { type PostgresServer, startPostgres } from "../servers/postgres.ts";
import { FakeRelay } from "./fake-relay.ts";

interface ShopEvents {
  "order.placed": { id: string };
}

const TABLE = "shop.outbox";

class AppModule {}
class SettingsModule {}

async function startApp(imported: DynamicModule, others: readonly DynamicModule[] = []) {
  const root = { module: AppModule, imports: [...others, imported] };
  return await NestFactory.createApplicationContext(root, { logger: false, abortOnError: false });
}

describe("the outbox as a provider", () => {
  let server: PostgresServer;
  before(async () => {
    server = await startPostgres({ version: 18 });
    await server.query(outboxTableSql(TABLE));
    await server.query("create table shop.orders (id text primary key, total int not null)");
  });
  after(() => server[Symbol.asyncDispose]());

  const settings: DynamicModule = {
    module: SettingsModule,
    providers: [{ provide: "table", useValue: TABLE }],
    exports: ["table"],
  };
  const modules: Readonly<Record<string, () => DynamicModule>> = {
    forRoot: () => OutboxModule.forRoot<ShopEvents>({ table: TABLE }),
    forRootAsync: () =>
      OutboxModule.forRootAsync<ShopEvents>({
        imports: [settings],
        inject: ["table"],
        useFactory: async (table: string) => ({ table }),
      }),
  };

  for (const [library, open] of Object.entries({ TypeORM: openTypeOrmManager, Prisma: openPrisma })) {
    for (const [name, make] of Object.entries(modules)) {
      test(`F5 H4 of ${name}, it writes in the transaction of ${library}, or not at all`, async () => {
        await server.query("truncate shop.orders, shop.outbox");
        const app = await startApp(make());
        await using database = await open(server.url);
        const outbox = app.get<OutboxService<ShopEvents>>(OutboxService);
        const place = (id: string, fails: boolean) =>
          database.transaction(async (tx, insertOrder) => {
            await insertOrder(id);
            await outbox.write(tx, { type: "order.placed", key: id, payload: { id } });
            if (fails) throw new Error("the order fails");
          });
        await assert.rejects(place("o-1", true), /the order fails/);
        await place("o-2", false);
        const { rows } = await server.query(
          "select orders.id, event_type as type from shop.orders full join shop.outbox on aggregate_id = orders.id",
        );
        assert.deepEqual(rows, [{ id: "o-2", type: "order.placed" }]);
        await app.close();
      });
    }
  }
});

describe("the relay in Nest's lifecycle", () => {
  const withRelay = (relay: FakeRelay, options: Partial<OutboxModuleOptions> = {}) =>
    OutboxModule.forRoot({
      table: TABLE,
      relay: () => ({ relay, close: async () => void relay.calls.push("close") }),
      ...options,
    });

  /** Another module, which notes when its own hooks are called. */
  function witness(calls: string[]): DynamicModule {
    const hooks = {
      onModuleInit: () => void calls.push("module init"),
      onModuleDestroy: () => void calls.push("module destroy"),
      beforeApplicationShutdown: () => void calls.push("before shutdown"),
    };
    return { module: SettingsModule, providers: [{ provide: "witness", useValue: hooks }] };
  }

  test("H4 it starts when all modules have begun, and drains, stops and closes at the end", async () => {
    const relay = new FakeRelay();
    const app = await startApp(withRelay(relay), [witness(relay.calls)]);
    assert.deepEqual(relay.calls, ["module init", "start"]);
    assert.equal(app.get(OutboxRelay).relay, relay);
    await app.close();
    const ending = ["module destroy", "before shutdown", "drain", "stop", "close"];
    assert.deepEqual(relay.calls, ["module init", "start", ...ending]);
    assert.equal(app.get(OutboxRelay).relay, null);
  });

  test("H4 a drain that does not end keeps the shutdown for the given time only, and one that fails for none", async () => {
    const endless = () => new Promise<never>(() => {});
    const failing = () => Promise.reject(new Error("no database"));
    for (const drain of [endless, failing]) {
      const relay = new FakeRelay({ drain });
      const app = await startApp(withRelay(relay, { drainMs: 20 }));
      await app.close();
      assert.deepEqual(relay.calls, ["start", "drain", "stop", "close"]);
    }
    const relay = new FakeRelay();
    await (await startApp(withRelay(relay, { drainMs: 0 }))).close();
    assert.deepEqual(relay.calls, ["start", "stop", "close"]);
  });

  test("H4 an application whose relay cannot be made or started does not start, and leaves nothing open", async () => {
    const relay = new FakeRelay({ start: () => Promise.reject(new Error("no lanes")) });
    await assert.rejects(startApp(withRelay(relay)), /no lanes/);
    assert.deepEqual(relay.calls, ["start", "stop", "close"]);
    const unmade = OutboxModule.forRoot({ table: TABLE, relay: () => Promise.reject(new Error("no database")) });
    await assert.rejects(startApp(unmade), /no database/);
  });

  test("H4 health is down until the relay reads and while its source is broken; a closed destination leaves it up", async () => {
    const relay = new FakeRelay();
    const app = await startApp(withRelay(relay));
    const health = () => app.get(OutboxHealthIndicator).isHealthy("relay").relay;
    const here = { relay: "in this process" };
    assert.deepEqual(health(), { status: "down", ...here, problems: { relay: "it has not read its source yet" } });
    relay.tell("RunEnded", { pipeline: "p", rows: 0, claimed: 0, durationMs: 1 });
    assert.deepEqual(health(), { status: "up", ...here });
    relay.tell("SourceBroken", { pipeline: "p", code: "TABLE_MISSING", reason: "no table" });
    assert.deepEqual(health(), { status: "down", ...here, problems: { p: "no table" } });
    const reason = "settling failed: ungültige Eingabesyntax: »cust-7« (SQLSTATE 22P02)";
    relay.tell("SourceBroken", { pipeline: "p", code: "COLUMN_MISTYPED", reason });
    assert.doesNotMatch(JSON.stringify(health()), /cust-7/, "health checks are often public");
    relay.tell("SourceRecovered", { pipeline: "p" });
    relay.tell("CircuitOpened", { destination: "broker", topic: null, reason: "refused" });
    relay.tell("CircuitOpened", { destination: "broker", topic: "orders", reason: "missing" });
    const closedDestinations = { broker: "refused", "broker/orders": "missing" };
    assert.deepEqual(health(), { status: "up", ...here, closedDestinations });
    relay.tell("CircuitClosed", { destination: "broker", topic: null });
    relay.tell("CircuitClosed", { destination: "broker", topic: "orders" });
    assert.deepEqual(health(), { status: "up", ...here });
    relay.tell("InstanceLost", { instance: "i", reason: "the lease is over" });
    assert.deepEqual(health(), { status: "down", ...here, problems: { relay: "the lease is over" } });
    const indicator = app.get(OutboxHealthIndicator);
    await app.close();
    relay.tell("RunEnded", { pipeline: "p", rows: 0, claimed: 0, durationMs: 1 });
    assert.equal(indicator.isHealthy().outbox.status, "down");
  });

  test("H4 a process that only writes is up, with its relay elsewhere", async () => {
    const app = await startApp(OutboxModule.forRoot({ table: TABLE }));
    assert.deepEqual(app.get(OutboxHealthIndicator).isHealthy(), { outbox: { status: "up", relay: "elsewhere" } });
    assert.equal(app.get(OutboxRelay).relay, null);
    await app.close();
  });
});
