import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { FrozenPlan } from "../../src/operations/replay/frozen-plan.ts";
import { type HttpReceiver, startHttpReceiver } from "../servers/http-receiver.ts";
import { until } from "../servers/until.ts";
import { type ReplayService, type ReplayStage, replayStage } from "./replay-stage.ts";
import { serverOfFile } from "./service-stage.ts";

const server = serverOfFile();
let receiver: HttpReceiver;

before(async () => {
  receiver = await startHttpReceiver();
});

after(() => receiver[Symbol.asyncDispose]());

const arrivedAt = (path: string) => receiver.arrivals().filter(({ url }) => url === path);

async function stageAt(path: string): Promise<ReplayStage> {
  return await replayStage(server(), `${receiver.origin}${path}`);
}

async function planned({ ask }: ReplayService, body: object): Promise<FrozenPlan> {
  const { body: plan, status } = await ask<FrozenPlan>("POST", "/api/v1/replays", { body });
  assert.equal(status, 201, JSON.stringify(plan));
  return plan;
}

const change = ({ ask }: ReplayService, plan: FrozenPlan, verb: "run" | "pause" | "cancel", body = {}) =>
  ask<FrozenPlan & { readonly detail: string }>("POST", `/api/v1/replays/{id}/${verb}`, {
    params: { id: plan.id },
    body,
  });

/** How many have arrived, as the plan knows it. */
async function doneOf({ sql }: ReplayStage): Promise<number> {
  const [row] = await sql<{ done: string }>(
    "select breakdown -> 'progress' ->> 'done' as done from outbox_relay.replay_plans",
  );
  return Number(row?.done);
}

async function becomes(
  { ask }: ReplayService,
  { id }: FrozenPlan,
  state: FrozenPlan["state"],
  it: ReplayStage,
): Promise<FrozenPlan> {
  const show = async () => (await ask<FrozenPlan>("GET", "/api/v1/replays/{id}", { params: { id } })).body;
  const now = "select state from outbox_relay.replay_plans where id = $1";
  await until(
    `the plan is ${state}`,
    async () => (await it.sql<{ state: string }>(now, [id]))[0]?.state === state,
  ).catch(async (error: Error) => assert.fail(`${error.message}: ${JSON.stringify(await show())}`));
  return await show();
}

describe("replay plans", { concurrency: 2 }, () => {
  test("F3 F2: a service that is killed in the middle of 10,000: the next one goes on, and each event ends as planned", async () => {
    await using it = await stageAt("/killed");
    const first = await it.run();
    await using _first = first;
    await it.bury({ count: 10_000 });
    await it.bury({ count: 100, type: "order.other", key: "'other' || n" });
    const plan = await planned(first, { q: "type:order.placed" });
    await change(first, plan, "run");
    await until("it is in the midst of it", async () => (await doneOf(it)) > 2_000);
    first.kill("SIGKILL");
    await first.ended;
    const before = await it.sql("select from outbox_relay.replay_items where state = 'done'");
    assert.ok(before.length < 9_000, `${before.length} were done already`);
    await using second = await it.run();
    const done = await becomes(second, plan, "done", it);
    assert.deepEqual(done.progress, { waiting: 0, sent: 0, done: 10_000, failed: 0, left: 0 });
    const wanted = await it.sql<{ id: string }>("select id from orders.outbox where event_type = 'order.placed'");
    const ids = arrivedAt("/killed").map(({ headers }) => headers["event-id"]);
    assert.deepEqual([...new Set(ids)].sort(), wanted.map(({ id }) => id).sort(), "these and no others");
    // What was on the wire when the process ended is sent again: at least once, as this destination promises.
    assert.ok(ids.length - 10_000 < 2_000, `${ids.length} arrivals`);
    const touched = await it.sql("select event_id from outbox_relay.audit where action = 'replay' group by 1");
    const [entries] = await it.sql<{ count: string }>(
      "select count(*) from outbox_relay.audit where action = 'replay'",
    );
    assert.deepEqual([touched.length, entries?.count], [10_000, "10000"], "each was released once");
    assert.equal((await it.sql("select from outbox_relay.failed_events where resolved_at is null")).length, 100);
    assert.equal((await it.sql("select from outbox_relay.holds where state = 'dead'")).length, 100);
  });

  test("F3 F2 G4: 1,000 parked keys: what is planned goes out first in its key, what waited follows, nothing twice", async () => {
    await using it = await stageAt("/parked");
    await using running = await it.run();
    await it.bury({ count: 1_000, followers: 2 });
    const plan = await planned(running, { q: "type:order.placed", reason: "mended" });
    assert.deepEqual([plan.count, plan.keys, plan.progress.waiting, plan.state], [1_000, 1_000, 1_000, "planned"]);
    assert.equal((await change(running, plan, "run")).status, 200);
    const done = await becomes(running, plan, "done", it);
    assert.deepEqual(done.progress, { waiting: 0, sent: 0, done: 1_000, failed: 0, left: 0 });
    await until("the followers are out", async () => {
      return (await it.sql("select from orders.outbox where not published")).length === 0;
    });
    const steps = Map.groupBy(
      arrivedAt("/parked").map(({ body }) => JSON.parse(body.toString()) as { key: string; step: number }),
      ({ key }) => key,
    );
    assert.equal(steps.size, 1_000);
    for (const [key, events] of steps) assert.equal(events.map(({ step }) => step).join(), "0,1,2", key);
  });
});
