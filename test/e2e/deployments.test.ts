import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { pausePipelines } from "../../src/operations/pipelines/pause.ts";
import { openDatabase } from "../../src/postgres/pool.ts";
import { memoryPublisher } from "../../src/publishers/memory/memory-publisher.ts";
import { type PostgresServer, startPostgres } from "../servers/postgres.ts";
import { ORDERS } from "./outbox-tables.ts";
import { type LiveRelay, type Scene, withScene } from "./scene.ts";

let server: PostgresServer;
before(async () => {
  server = await startPostgres({ version: 18 });
});
after(() => server[Symbol.asyncDispose]());

const timing = { leaseMs: 2_000, leaseMarginMs: 500, publishTimeoutMs: 1_000 };
const MANY = Array.from({ length: 40 }, (_, at) => ({ key: `k${at}` }));

const isServing = (live: LiveRelay) => live.waitFor("LaneTaken");
const refuses = (live: LiveRelay) => live.waitFor("SourceBroken", ({ code }) => code === "TABLE_SHARED");

/** A relay into a destination in memory. */
async function relayInto({ relay }: Scene, end: string, options: Parameters<Scene["relay"]>[0] = {}) {
  const publisher = memoryPublisher({ name: end });
  const live = await relay({ timing, destinations: { [end]: publisher }, ...options });
  return { live, publisher };
}

async function handOver({ stage }: Scene, pipeline: string): Promise<void> {
  const database = openDatabase({ url: stage.url });
  try {
    await pausePipelines(database, [pipeline], { by: "test", handsOver: true });
  } finally {
    await database.close();
  }
}

describe("two deployments on one table", { concurrency: 3 }, () => {
  test("H1 with another destination the second refuses and both say so, until the first hands over", async () => {
    await withScene(server, [ORDERS], async (scene) => {
      const first = await relayInto(scene, "kafka");
      await isServing(first.live);
      const second = await relayInto(scene, "rabbit");
      const { reason } = await refuses(second.live);
      assert.match(reason, /orders\.outbox is read by another deployment too: orders\.outbox->kafka .*--hand-over/s);
      await scene.insert(ORDERS, MANY);
      await first.publisher.arrived(MANY.length);
      const warned = await first.live.waitFor("SourceWarned", ({ code }) => code === "TABLE_SHARED");
      assert.match(warned.reason, /orders\.outbox->rabbit/);
      assert.equal(second.publisher.delivered.length, 0);
      await handOver(scene, "orders.outbox->kafka");
      await isServing(second.live);
      await scene.insert(ORDERS, MANY);
      await second.publisher.arrived(MANY.length);
      assert.deepEqual([first.publisher.delivered.length, second.publisher.delivered.length], [40, 40]);
    });
  });

  test("H1 with another service name the second gets no lane, also while the first restarts", async () => {
    await withScene(server, [ORDERS], async (scene) => {
      const shop = await relayInto(scene, "kafka", { service: "shop" });
      await isServing(shop.live);
      const other = await relayInto(scene, "kafka", { service: "other" });
      assert.match((await refuses(other.live)).reason, /of the service shop\. This is .* of the service other/);
      await scene.insert(ORDERS, MANY);
      await shop.publisher.arrived(MANY.length);
      await shop.live.stop();
      const again = await relayInto(scene, "kafka", { service: "shop" });
      await scene.insert(ORDERS, MANY);
      await again.publisher.arrived(MANY.length);
      assert.equal(other.publisher.delivered.length, 0);
      await again.live.stop();
      await scene.insert(ORDERS, MANY);
      await other.publisher.arrived(MANY.length);
    });
  });

  test("H1 an upgrade that changes the routes is no dead end: what is new waits until the old instances are gone", async () => {
    await withScene(server, [ORDERS], async (scene) => {
      const old = await relayInto(scene, "kafka", { service: "shop" });
      await isServing(old.live);
      const [kafka, rabbit] = [memoryPublisher(), memoryPublisher()];
      const next = await scene.relay({
        timing,
        service: "shop",
        destinations: { kafka, rabbit },
        routes: [
          { types: ["order.*"], destination: "kafka" },
          { types: ["mail.*"], destination: "rabbit" },
        ],
      });
      await refuses(next);
      await next.waitFor("LaneTaken", ({ pipeline }) => pipeline === "orders.outbox->kafka");
      await old.live.stop();
      await scene.insert(ORDERS, [{ type: "order.placed" }, { type: "mail.sent" }]);
      await rabbit.arrived(1);
      await kafka.arrived(1);
      assert.equal(old.publisher.delivered.length, 0);
    });
  });

  test("H1 instances of one deployment whose addresses differ are named", async () => {
    await withScene(server, [ORDERS], async (scene) => {
      const parts = { service: "shop", lanes: 2 };
      const at = (address: string) => ({ kafka: { publisher: memoryPublisher(), address } });
      const one = await relayInto(scene, "kafka", { ...parts, destinations: at("kafka one:9092") });
      await isServing(one.live);
      const two = await relayInto(scene, "kafka", { ...parts, destinations: at("kafka two:9092") });
      for (const { live } of [one, two]) {
        const { reason } = await live.waitFor("SourceWarned", ({ code }) => code === "TABLE_SHARED");
        assert.match(reason, /kafka one:9092.*kafka two:9092|kafka two:9092.*kafka one:9092/);
      }
    });
  });
});
