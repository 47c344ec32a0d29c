import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { systemClock } from "../../src/core/clock.ts";
import type { OnExhausted } from "../../src/core/hold.ts";
import { delayAfter, exponentialRetry, RETRY_PRESETS } from "../../src/core/retry-policy.ts";
import { discardDeadLetters } from "../../src/operations/dead-letters/dead-letter-discard.ts";
import { openDatabase } from "../../src/postgres/pool.ts";
import { assertWithin } from "../servers/pace.ts";
import { type PostgresServer, startPostgres } from "../servers/postgres.ts";
import { until } from "../servers/until.ts";
import { BILLING, ORDERS } from "./outbox-tables.ts";
import { type Scene, withScene } from "./scene.ts";

let server: PostgresServer;
before(async () => {
  server = await startPostgres({ version: 18 });
});
after(() => server[Symbol.asyncDispose]());

const toSink = (onExhausted: OnExhausted, attemptsMax = 3) => [
  { destination: "sink", retry: exponentialRetry({ initialMs: 5, maxMs: 40, attemptsMax }), onExhausted },
];

describe("events that fail", { concurrency: 3 }, () => {
  test("A8: the wait before the next try survives a restart of the relay", async () => {
    await withScene(server, [ORDERS], async ({ arrived, insert, relay, sink, stage }) => {
      await sink.order({ kind: "retry", key: "k", count: 1 });
      const routes = [{ destination: "sink", retry: exponentialRetry({ initialMs: 6_000 }) }];
      const [id] = await insert(ORDERS, [{ key: "k" }]);
      const first = await relay({ routes });
      await first.waitFor("BatchSettled", ({ failed }) => failed === 1);
      await first.stop();
      const [hold] = await stage.sql<{ next_at: Date }>("select next_at from outbox_relay.holds");
      const restartedMs = Date.now();
      assert.ok(restartedMs < hold!.next_at.getTime(), "the machine was too slow: the try is due already");
      await relay({ routes });
      await arrived([id!]);
      const [failed, delivered] = await sink.attempts();
      assert.equal(failed?.fault, "retry");
      assert.ok(delivered!.atMs >= hold!.next_at.getTime(), "tried again before its time");
      await assertWithin(delivered!.atMs - hold!.next_at.getTime(), 1_000, "the try after its time");
    });
  });

  test("A9 A10: the tenth failure makes a dead letter with the error of every attempt; the row keeps its flag, other keys go on", async () => {
    await withScene(server, [ORDERS], async ({ arrived, insert, relay, sink, stage }) => {
      const reasons = Array.from({ length: 10 }, (_, at) => `refusal number ${at + 1}`);
      for (const reason of reasons) await sink.order({ kind: "retry", key: "poison", reason, count: 1 });
      const live = await relay({ routes: toSink("park", 10) });
      const payload = '{ "keep":  "these bytes" }';
      const [dead] = await insert(ORDERS, [{ key: "poison", payload }]);
      const others = await insert(ORDERS, [{ key: "poison" }, { key: "a" }, { key: "b" }, { key: null }]);
      await live.waitFor("IntentDeadLettered", ({ recordId }) => recordId === dead);
      await arrived(others.slice(1));
      const [letter] = await stage.sql<Record<string, unknown> & { errors: { reason: string; attempt: number }[] }>(
        `select *, convert_from(payload, 'UTF8') as text, last_failed_at > first_failed_at as lasted
         from outbox_relay.failed_events`,
      );
      assert.equal(letter?.original_event_id, dead);
      assert.equal(letter?.failure_count, 10);
      assert.equal(letter?.failure_reason, "refusal number 10");
      assert.deepEqual(
        letter?.errors.map(({ attempt, reason }) => [attempt, reason]),
        reasons.map((reason, at) => [at + 1, reason]),
      );
      assert.deepEqual(
        [letter?.source_schema, letter?.source_table, letter?.text, letter?.lasted, letter?.event_key],
        ["orders", "outbox", payload, true, "poison"],
      );
      const left = () => stage.sql<{ id: string }>("select id from orders.outbox where not published");
      await until("all but the dead event and its follower are marked", async () => (await left()).length === 2);
      assert.deepEqual((await left()).map(({ id }) => id).toSorted(), [dead!, others[0]!].toSorted());
      assert.equal((await sink.attempts()).filter(({ id }) => id === dead).length, 10);
    });
  });

  test("C2: the worker table waits in doubling steps, its sixth failure isolates the event in its own columns, and a person can set it back", async () => {
    assert.deepEqual(
      [1, 2, 3, 4, 5, 6].map((failures) => delayAfter(RETRY_PRESETS.worker, failures, 0)),
      [30_000, 60_000, 120_000, 240_000, 480_000, "exhausted"],
    );
    await withScene(server, [], async (scene) => {
      await createWorkerTable(scene);
      const { relay, sink, stage } = scene;
      await sink.order({ kind: "retry", key: "order-1", reason: "unroutable" });
      // The preset in miniature: the base is a thousandth, the shape is the same.
      const live = await relay({
        tables: [{ schema: "public", table: "event_outbox" }],
        routes: [{ destination: "sink", retry: exponentialRetry({ initialMs: 30, maxMs: 3_600, attemptsMax: 6 }) }],
      });
      await live.waitFor("IntentDeadLettered");
      const [row] = await stage.sql<{ status: string; attempts: number; isolated: boolean }>(
        `select status, attempts, next_attempt_at between now() + interval '364 days' and now() + interval '366 days'
           as isolated from event_outbox where aggregate_id = 'order-1'`,
      );
      assert.deepEqual(row, { status: "Failed", attempts: 6, isolated: true });
      // By what was held against the event: on a busy machine an answer may come too late, and that counts for nothing.
      const times = live.told("IntentRelayFailed", ({ scope }) => scope === "event").map(({ timestamp }) => timestamp);
      const waits = times.slice(1).map((atMs, at) => atMs - times[at]!);
      assert.equal(waits.length, 5);
      for (const [at, ms] of [30, 60, 120, 240, 480].entries()) assert.ok(waits[at]! >= ms - 1, `waited ${waits}`);

      await sink.clearFaults();
      await stage.sql("update event_outbox set status = 'Pending', next_attempt_at = now() where status = 'Failed'");
      await until("the event is dispatched after all", async () => {
        const [left] = await stage.sql<{ all: boolean }>(
          "select bool_and(status = 'Dispatched') as all from event_outbox",
        );
        return left?.all;
      });
    });
  });

  test("C5: a failure inside a batch still delivers the others, and every key stays in the order of occurrence", async () => {
    await withScene(server, [ORDERS], async ({ arrived, insert, relay, sink }) => {
      await sink.order({ kind: "reject", key: "k2" });
      await sink.order({ kind: "retry", key: "k5", count: 2 });
      const events = Array.from({ length: 60 }, (_, at) => ({ key: `k${at % 6}` }));
      const ids = await insert(ORDERS, events);
      await relay({ routes: toSink("park"), lanes: 1 });
      const wanted = ids.filter((_, at) => events[at]?.key !== "k2");
      const arrived_ = await arrived(wanted);
      assert.equal(arrived_.length, wanted.length);
      for (const key of ["k0", "k1", "k3", "k4", "k5"]) {
        const ofKey = (id: string) => events[ids.indexOf(id)]?.key === key;
        assert.deepEqual(arrived_.filter(ofKey), ids.filter(ofKey), `order of ${key}`);
      }
    });
  });

  test("D6: every attempt, success and failure is a technical event, and so is a type without a route", async () => {
    await withScene(server, [ORDERS], async ({ insert, relay, sink }) => {
      await sink.order({ kind: "retry", key: "k", reason: "busy", count: 1 });
      await sink.order({ kind: "reject", key: "bad", reason: "illegal" });
      // A type without a taker is told after a minute, which is short here.
      const clock = {
        ...systemClock,
        sleep: (ms: number, signal?: AbortSignal) => systemClock.sleep(ms === 30_000 ? 100 : ms, signal),
      };
      const routes = toSink("park").map((route) => ({ ...route, types: ["order.*"] }));
      const live = await relay({ routes, clock });
      const [good, bad] = await insert(ORDERS, [{ key: "k" }, { key: "bad" }]);
      await insert(ORDERS, [{ key: "k", type: "nobody.wants" }]);
      const failed = await live.waitFor("IntentRelayFailed", ({ recordId }) => recordId === good);
      const relayed = await live.waitFor("IntentRelayed", ({ recordId }) => recordId === good);
      const dead = await live.waitFor("IntentDeadLettered", ({ recordId }) => recordId === bad);
      const mismatch = await live.waitFor("RelayMismatch");
      assert.deepEqual(
        [failed.attempt, failed.reason, failed.scope, failed.retryInMs, failed.intentType, failed.target, failed.key],
        [1, "busy", "event", 5, "order.placed", "order.placed", "k"],
      );
      assert.equal(relayed.attempt, 2);
      assert.ok(relayed.durationMs >= 0 && relayed.timestamp >= failed.timestamp);
      assert.match(relayed.correlationId ?? "", /^[0-9a-f-]{36}$/);
      assert.deepEqual([dead.reason, dead.attempt, dead.parks], ["illegal", 1, true]);
      assert.deepEqual([mismatch.intentType, mismatch.count], ["nobody.wants", 1]);
    });
  });
});

describe("a head that is exhausted", { concurrency: 3 }, () => {
  test("F2: park: its followers wait, and a replay of the head delivers all of them in order", async () => {
    await withScene(server, [BILLING], async ({ arrived, insert, relay, sink, stage }) => {
      await sink.order({ kind: "retry", key: "k" });
      const live = await relay({ routes: toSink("park") });
      const ids = await insert(BILLING, [{ key: "k" }, { key: "k" }, { key: "k" }]);
      await live.waitFor("IntentDeadLettered", ({ recordId }) => recordId === ids[0]);
      await sink.clearFaults();
      // The other key proves that polling goes on while k stays parked.
      assert.deepEqual(
        await arrived(await insert(BILLING, [{ key: "other" }])),
        (await sink.arrivals()).map(({ id }) => id),
      );
      assert.equal((await sink.arrivals()).length, 1);
      await replay(stage.sql, ids[0]!);
      assert.deepEqual((await arrived(ids)).slice(1), ids);
    });
  });

  test("F2 H1: after a discard its followers go on within seconds, however rare the regular review of holds is", async () => {
    await withScene(server, [ORDERS], async ({ arrived, insert, relay, sink, stage }) => {
      await sink.order({ kind: "reject", key: "k" });
      const live = await relay({ routes: toSink("park"), timing: { reviewMs: 3_600_000 } });
      const [dead] = await insert(ORDERS, [{ key: "k" }]);
      await live.waitFor("IntentDeadLettered", ({ recordId }) => recordId === dead);
      const [follower] = await insert(ORDERS, [{ key: "k" }]);
      await sink.clearFaults();
      const database = openDatabase({ url: stage.relayUrl });
      await using _ = { [Symbol.asyncDispose]: () => database.close() };
      const author = { by: "me", reason: "sent by hand" };
      const { done } = await discardDeadLetters({ database, columns: {} }, { choice: { ids: [dead!] }, author });
      assert.equal(done, 1);
      await arrived([follower!], 30_000);
    });
  });

  test("F2: block: it is tried for ever, and its followers come right after it", async () => {
    await withScene(server, [BILLING], async ({ arrived, insert, relay, sink }) => {
      await sink.order({ kind: "retry", key: "k" });
      const live = await relay({ routes: toSink("block") });
      const ids = await insert(BILLING, [{ key: "k" }, { key: "k" }]);
      await live.waitFor("IntentRelayFailed", ({ attempt }) => attempt > 5);
      await sink.clearFaults();
      assert.deepEqual(await arrived(ids), ids);
      assert.deepEqual(live.told("IntentDeadLettered"), []);
    });
  });

  test("F2: skip: it is dead, its followers go on", async () => {
    await withScene(server, [BILLING], async ({ arrived, insert, relay, sink, stage }) => {
      const [id] = await insert(BILLING, [{ key: "k" }]);
      await sink.order({ kind: "retry", id: id! });
      await relay({ routes: toSink("skip") });
      const followers = await insert(BILLING, [{ key: "k" }, { key: "k" }]);
      assert.deepEqual(await arrived(followers), followers);
      const letters = await stage.sql<{ id: string }>("select original_event_id as id from outbox_relay.failed_events");
      assert.deepEqual(letters, [{ id }]);
    });
  });
});

/** What an operator does by hand: the hold is no longer dead and due at once. */
async function replay(sql: Scene["stage"]["sql"], id: string): Promise<void> {
  await sql(
    `with hold as (
       update outbox_relay.holds set state = 'retrying', attempts = 0, next_at = clock_timestamp() where event_id = $1
       returning pipeline, event_id)
     delete from outbox_relay.failed_events f using hold h
     where f.pipeline = h.pipeline and f.original_event_id = h.event_id`,
    [id],
  );
}

async function createWorkerTable({ stage }: Scene): Promise<void> {
  await stage.sql(`
    create table public.event_outbox (event_id uuid primary key default gen_random_uuid(), event_name text not null,
      aggregate_id text not null, payload jsonb not null, correlation_id text,
      occurred_at timestamptz not null default clock_timestamp(), status text not null default 'Pending',
      attempts int not null default 0, next_attempt_at timestamptz, last_error text);
    grant select, update on public.event_outbox to ${stage.role};
    insert into public.event_outbox (event_name, aggregate_id, payload) values ('OrderPlaced', 'order-1', '{}');
    insert into public.event_outbox (event_name, aggregate_id, payload) values ('OrderPlaced', 'order-2', '{}')`);
}
