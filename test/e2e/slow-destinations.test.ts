import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as pauseMs } from "node:timers/promises"; // why: slowness is what is tested
import { delivered } from "../../src/core/outcome.ts";
import type { Publisher } from "../../src/ports/publisher.ts";
import { openDatabase } from "../../src/postgres/pool.ts";
import { createRelay } from "../../src/relay/relay.ts";
import { postgresSource } from "../../src/sources/postgres/postgres-source.ts";
import { until } from "../servers/until.ts";
import { ORDERS } from "./outbox-tables.ts";
import { serverOfFile, stagesOn } from "./service-stage.ts";

const stage = stagesOn(serverOfFile(), "slow", [ORDERS]);

/** Takes its time for every event, and counts. */
function slowPublisher(name: string, eventMs: number): Publisher & { count: number } {
  return {
    name,
    count: 0,
    capabilities: { keyOrderInBatch: true, deduplicates: false },
    async publish(batch, report, signal) {
      for (const index of batch.keys()) {
        await pauseMs(eventMs, null, { signal }).catch(() => {});
        if (signal.aborted) return;
        this.count += 1;
        report(index, delivered);
      }
    },
    async close() {},
  };
}

/** So many that they are not through with them in a minute. */
const COUNT = 1_500;

test("F4 destinations that are slow for long do not keep another waiting for a connection", async () => {
  await using it = await stage();
  const write = (type: string, count: number) =>
    it.sql(
      `insert into orders.outbox (aggregate_id, event_type, payload)
       select 'k' || n, $1, '{}' from generate_series(1, $2::int) n`,
      [type, count],
    );
  await write("a", COUNT);
  await write("b", COUNT);
  const database = openDatabase({ url: it.url });
  const publishers = { a: slowPublisher("a", 200), b: slowPublisher("b", 200), quick: slowPublisher("quick", 0) };
  await using relay = createRelay({
    sources: [postgresSource({ database, table: "orders.outbox" })],
    destinations: publishers,
    routes: [{ types: ["a"], destination: "a" }, { types: ["b"], destination: "b" }, { destination: "quick" }],
    // Their queues are full at once, and their runs have to wait for room.
    limits: { inFlightEventsMax: 20, batchSize: 5 },
  });
  await relay.start();
  await until("both slow ones are at work", () => publishers.a.count > 2 && publishers.b.count > 2);
  for (let round = 1; round <= 3; round += 1) {
    await write("c", 1);
    await until("the quick one gets its event", () => publishers.quick.count === round);
  }
  assert.ok(publishers.a.count < COUNT && publishers.b.count < COUNT, "the slow ones were still at work");
  await relay.stop();
  await database.close();
});
