import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, describe, test } from "node:test";
import type { OnExhausted } from "../../src/core/hold.ts";
import { exponentialRetry } from "../../src/core/retry-policy.ts";
import { quoteIdentifier } from "../../src/postgres/identifiers.ts";
import { managedTableSql } from "../../src/postgres/managed/managed-table.sql.ts";
import { openDatabase } from "../../src/postgres/pool.ts";
import { createRelay } from "../../src/relay/relay.ts";
import { logSource } from "../../src/sources/postgres/log/log-source.ts";
import { tailKind } from "../../src/sources/postgres/tail/tail-kind.ts";
import { type PostgresServer, startPostgres } from "../servers/postgres.ts";
import { until } from "../servers/until.ts";
import { QUICK, type Scene, withScene } from "./scene.ts";
import { sinkPublisher } from "./sink-publisher.ts";

let server: PostgresServer;
before(async () => {
  server = await startPostgres({ version: 18 });
});
after(() => server[Symbol.asyncDispose]());

const TABLE = { schema: "shop", table: "outbox" };

describe("events of a log that fail", { concurrency: 3 }, () => {
  test("F2 F4 D9: a poison event parks its key beside the log; everything else goes on, and the key follows in order once it is well", async () => {
    await withLog(async ({ arrived, publish, relay, scene, stuck }) => {
      await scene.sink.order({ kind: "retry", key: "poison" });
      relay("block");
      const ofPoison = await publish("poison", 3);
      const others = await publish("fine", 200);
      assert.deepEqual(await arrived(others), others);
      // The log itself has moved on: only what waits stands beside it.
      await until("the whole log is behind the checkpoint", async () => (await stuck()).join() === ofPoison.join());
      const later = await publish("poison", 2);
      await until("what comes later waits too", async () => (await stuck()).length === 5);
      await scene.sink.clearFaults();
      const wanted = [...ofPoison, ...later];
      const all = await arrived(wanted);
      assert.deepEqual(
        all.filter((id) => wanted.includes(id)),
        wanted,
      );
      await until("nothing waits beside the log", async () => (await stuck()).length === 0);
      const [last] = await publish("poison", 1);
      await arrived([last!]);
      assert.equal(all.length + 1, (await scene.sink.arrivals()).length, "nothing arrived twice");
    });
  });

  test("F2 D9: an exhausted event is a dead letter that keeps its key's followers, or lets them go, as chosen", async () => {
    for (const onExhausted of ["park", "skip"] as const) {
      await withLog(async ({ arrived, publish, relay, scene, stuck }) => {
        await scene.sink.order({ kind: "reject", key: "poison", reason: "illegal", count: 1 });
        relay(onExhausted);
        const [dead, follower] = await publish("poison", 2);
        const others = await publish("fine", 5);
        if (onExhausted === "skip") await arrived([follower!]);
        await arrived(others);
        const waits = onExhausted === "park" ? [dead, follower] : [dead];
        await until("what waits is beside the log", async () => (await stuck()).join() === waits.join());
        const letters = await scene.stage.sql<{ id: string; reason: string; source: string }>(
          `select original_event_id as id, failure_reason as reason, source_schema || '.' || source_table as source
           from outbox_relay.failed_events`,
        );
        assert.deepEqual(letters, [{ id: dead, reason: "illegal", source: "shop.outbox" }]);
      });
    }
  });

  test("F4 A4 D9: a topic that is closed keeps its own events and their keys back, the log goes on, and they follow in order", async () => {
    await withLog(async ({ arrived, publish, relay, scene, stuck }) => {
      await scene.sink.order({ kind: "unknown-topic", topic: "closed" });
      relay("park");
      const closed = await publish("k", 2, "closed");
      const behind = await publish("k", 2);
      const others = await publish("fine", 300);
      await arrived(others);
      await until("the closed topic's events wait beside the log", async () => (await stuck()).length === 4);
      await scene.sink.clearFaults();
      const wanted = [...closed, ...behind];
      assert.deepEqual(
        (await arrived(wanted)).filter((id) => wanted.includes(id)),
        wanted,
      );
    });
  });

  test("A1 A3 D9: whoever takes the lanes over finds what waits beside the log, and goes on where the log was left", async () => {
    await withLog(async ({ arrived, publish, relay, scene }) => {
      await scene.sink.order({ kind: "retry", key: "poison", count: 3 });
      const first = relay("block", 1_000);
      const ids = [...(await publish("poison", 3)), ...(await publish("fine", 50))];
      await arrived(ids.slice(3));
      await first.stop();
      const more = await publish("fine", 50);
      relay("block", 20);
      const all = await arrived([...ids, ...more]);
      assert.deepEqual([...all].toSorted(), [...ids, ...more].toSorted(), "each once");
      for (const wanted of [ids.slice(0, 3), [...ids.slice(3), ...more]]) {
        assert.deepEqual(
          all.filter((id) => wanted.includes(id)),
          wanted,
        );
      }
    });
  });
});

interface LogScene {
  readonly scene: Scene;
  relay(onExhausted: OnExhausted, retryMs?: number): { stop(): Promise<void> };
  /** Each in a transaction of its own; returns their ids. */
  publish(key: string, count: number, type?: string): Promise<string[]>;
  arrived(ids: readonly string[]): Promise<string[]>;
  /** What waits beside the log, once every lane has all of the log behind it; else "..". */
  stuck(): Promise<string[]>;
}

async function withLog(run: (scene: LogScene) => Promise<void>): Promise<void> {
  await withScene(server, [], async (scene) => {
    const { sink, stage } = scene;
    await stage.sql(managedTableSql({ table: TABLE, payload: "text", partition: "1 day", wakeUp: false }));
    await stage.sql(`grant usage on schema shop to ${quoteIdentifier(stage.role)};
      grant select on shop.outbox to ${quoteIdentifier(stage.role)}`);
    await using database = new AsyncDisposableStack();
    const opened = openDatabase({ url: stage.relayUrl, timeouts: { statementMs: 2_000, lockMs: 1_000 } });
    database.defer(() => opened.close());
    const relay = (onExhausted: OnExhausted, retryMs = 20) => {
      const retry = exponentialRetry({ initialMs: retryMs, maxMs: Math.max(100, retryMs), attemptsMax: 3 });
      const live = createRelay({
        sources: [
          logSource({
            database: opened,
            name: "shop.outbox",
            table: TABLE,
            kind: (spec) => tailKind({ database: opened, reference: TABLE, columns: {}, spec, start: "beginning" }),
          }),
        ],
        destinations: { sink: sinkPublisher(sink.port) },
        routes: [{ destination: "sink", retry, onExhausted }],
        timing: { ...QUICK, circuitInitialMs: 100, circuitMaxMs: 200 },
      });
      void live.start();
      return database.use(live);
    };
    await run({
      scene,
      relay,
      async publish(key, count, type = "order.placed") {
        const ids = Array.from({ length: count }, () => randomUUID());
        for (const id of ids) {
          await stage.sql("select shop.outbox_publish($1, $2, '{}', event_id => $3)", [type, key, id]);
        }
        return ids;
      },
      arrived: (ids) => scene.arrived(ids),
      async stuck() {
        const [behind] = await stage.sql<{ all: boolean }>(
          `select bool_and(pg_visible_in_snapshot(o.xid, (l.position ->> 'from')::pg_snapshot)) as all
           from shop.outbox o cross join outbox_relay.lanes l`,
        );
        if (behind?.all !== true) return [".."];
        const rows = await stage.sql<{ id: string }>("select event_id as id from outbox_relay.parked order by place");
        return rows.map(({ id }) => id);
      },
    });
  });
}
