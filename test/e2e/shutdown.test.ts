import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { memoryPublisher } from "../../src/publishers/memory/memory-publisher.ts";
import { createRelay } from "../../src/relay/relay.ts";
import { memorySource } from "../../src/sources/memory/memory-source.ts";
import { assertWithin } from "../servers/pace.ts";
import { type PostgresServer, startPostgres } from "../servers/postgres.ts";
import { until } from "../servers/until.ts";
import { ORDERS } from "./outbox-tables.ts";
import { type LiveRelay, withScene } from "./scene.ts";

/** Of the tests below; what answers nothing is given up then. */
const SHUTDOWN_MS = 2_000;
/** For connections that are closed after that. */
const SLACK_MS = 2_500;

describe("shutdown", () => {
  test("G5: a stop that comes while the instance joins ends the relay", async () => {
    const source = memorySource();
    const { promise: joining, resolve: letJoin } = Promise.withResolvers<void>();
    const { membership } = source;
    const slow = {
      ...source,
      membership: {
        databaseId: membership.databaseId,
        join: async (instance: Parameters<typeof membership.join>[0]) => {
          await joining;
          await membership.join(instance);
        },
        renew: membership.renew.bind(membership),
        reap: membership.reap.bind(membership),
        leave: membership.leave.bind(membership),
      },
    };
    const relay = createRelay({ sources: [slow], destinations: { memory: memoryPublisher() } });
    let hasStopped = false;
    await relay.start();
    const stopping = relay.stop().then(() => {
      hasStopped = true;
    });
    letJoin();
    await until("the relay has stopped", () => hasStopped);
    await stopping;
    assert.equal(source.database.tables.instances.size, 0, "the instance has not left");
  });

  test("G5: the relay stops in time while its database is gone", async () => {
    await using own = await startPostgres({ version: 18 });
    await withScene(own, [ORDERS], async ({ arrived, insert, relay }) => {
      const live = await relay({ timing: { shutdownMs: SHUTDOWN_MS } });
      await arrived(await insert(ORDERS, [{}]));
      await own.kill();
      await live.waitFor("SourceBroken");
      await assertStopsInTime(live);
    });
  });

  test("G5: the relay stops in time while its database is frozen", async () => {
    await using own = await startPostgres({ version: 18 });
    await withScene(own, [ORDERS], async ({ arrived, insert, relay }) => {
      const live = await relay({ timing: { shutdownMs: SHUTDOWN_MS } });
      await arrived(await insert(ORDERS, [{}]));
      await own.pause();
      try {
        await assertStopsInTime(live);
      } finally {
        own.resume();
      }
    });
  });

  test("G5 C1: the relay stops in time while its destination answers nothing or is gone, and the event is delivered later", async () => {
    await using own: PostgresServer = await startPostgres({ version: 18 });
    await withScene(own, [ORDERS], async ({ arrived, insert, relay, sink }) => {
      const timing = { shutdownMs: SHUTDOWN_MS, leaseMs: 12_000, publishTimeoutMs: 10_000 };
      await sink.order({ kind: "hang", key: "silent", count: 1 });
      const first = await relay({ timing });
      const ids = await insert(ORDERS, [{ key: "silent" }]);
      await until("the event is on the wire", async () => (await sink.attempts()).length === 1);
      await assertStopsInTime(first);

      await sink.order({ kind: "refuse" });
      const second = await relay({ timing });
      await second.waitFor("CircuitOpened");
      await assertStopsInTime(second);

      await sink.clearFaults();
      await relay();
      assert.deepEqual(await arrived(ids), ids);
    });
  });
});

async function assertStopsInTime(live: LiveRelay): Promise<void> {
  const startedMs = performance.now();
  await live.stop();
  await assertWithin(performance.now() - startedMs, SHUTDOWN_MS + SLACK_MS, "the stop");
}
