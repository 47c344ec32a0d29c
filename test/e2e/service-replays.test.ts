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

async function stageAt(path: string, more: Readonly<Record<string, string>> = {}): Promise<ReplayStage> {
  return await replayStage(server(), `${receiver.origin}${path}`, more);
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

/** 5,000 events take a quarter of a minute on a machine with other work. */
const PLAN_MS_MAX = 240_000;
const PLANNED = 5_000;

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
    PLAN_MS_MAX,
  ).catch(async (error: Error) => assert.fail(`${error.message}: ${JSON.stringify(await show())}`));
  return await show();
}

/** By their beginning, with a real example; what fits none lists those there are. */
async function groupsAreFound(it: ReplayStage): Promise<void> {
  const { groups } = JSON.parse((await it.command("dlq", "groups", "-o", "json")).stdout);
  assert.deepEqual([groups[0].count, groups[0].status, groups[0].destinations], [60, 400, ["shop"]]);
  assert.match(groups[0].example, /^http:\/\/shop answered 400 .*: no such customer \d+$/);
  const listed = await it.command("dlq", "groups");
  assert.match(listed.stdout, /shop +400 .*\n[\s\S]*no such customer \d+/);
  const prefix = (groups[0].group as string).slice(0, 10);
  const dry = await it.command("dlq", "replay", "--group", prefix, "--dry-run");
  assert.match(dry.stdout, /would replay 60 dead letters[\s\S]*60 {2}order\.placed to shop, error \S+: http/);
  for (const args of [
    ["dlq", "replay", "--group", "zzz", "--yes"],
    ["dlq", "list", "group:fff0"],
    ["replay", "plan", "group:fff0"],
  ]) {
    const none = await it.command(...args);
    assert.deepEqual([none.code, none.stdout], [4, ""], args.join(" "));
    assert.match(
      none.stderr,
      new RegExp(`No error group .* Groups: ${groups[0].group} \\(60\\): http://shop answered`),
    );
  }
}

async function nothingIsRefused(it: ReplayStage, running: ReplayService): Promise<void> {
  for (const args of [
    ["replay", "plan", "type:nothing"],
    ["replay", "plan", "type:nothing", "--delivered"],
    ["dlq", "replay", "--type", "nothing", "--yes"],
    ["dlq", "discard", "--type", "nothing", "--yes", "--reason", "test"],
  ]) {
    const none = await it.command(...args);
    assert.deepEqual([none.code, none.stdout], [4, ""], `${args.join(" ")}: ${none.stderr}`);
  }
  const empty = await running.ask<{ detail: string }>("POST", "/api/v1/replays", { body: { q: "type:nothing" } });
  assert.deepEqual([empty.status, /No open dead letters match/.test(empty.body.detail)], [404, true]);
  assert.equal((await it.sql("select from outbox_relay.replay_plans")).length, 0, "there is no plan of nothing");
}

/** Of 17 groups two begin with the same of 16 digits. */
async function ambiguousIsRefused(it: ReplayStage): Promise<void> {
  await it.sql(`insert into outbox_relay.failed_events
      (pipeline, original_event_id, source_schema, source_table, event_type, payload, failure_reason)
    select 'orders.outbox->mail', gen_random_uuid(), 'orders', 'outbox', 'mail.sent', '', 'wrong ' || chr(96 + n)
    from generate_series(1, 17) n`);
  const letters = await it.sql<{ group: string }>(
    `select fingerprint as group from outbox_relay.failed_events where failure_reason like 'wrong %'`,
  );
  const shared = [...Map.groupBy(letters, ({ group }) => group[0]!)].find(([, some]) => some.length > 1);
  const ambiguous = await it.command("dlq", "replay", "--group", shared?.[0] ?? "", "--yes");
  assert.equal(ambiguous.code, 4, ambiguous.stderr);
  for (const { group } of shared?.[1] ?? []) assert.ok(ambiguous.stderr.includes(group), ambiguous.stderr);
}

describe("replay plans", { concurrency: 2 }, () => {
  test("F3 F2: a service that is killed in the middle of 5,000: the next one goes on, and each event ends as planned", async () => {
    // Short, because the second service waits for it. Where a busy machine lets it lapse, events are repeated.
    await using it = await stageAt("/killed", { LEASE_TIMEOUT: "3s" });
    const first = await it.run();
    await using _first = first;
    await it.bury({ count: PLANNED });
    await it.bury({ count: 100, type: "order.other", key: "'other' || n" });
    const plan = await planned(first, { q: "type:order.placed" });
    await change(first, plan, "run");
    await until("it is in the midst of it", async () => (await doneOf(it)) > 1_000);
    first.kill("SIGKILL");
    await first.ended;
    const before = await it.sql("select from outbox_relay.replay_items where state = 'done'");
    assert.ok(before.length < PLANNED - 500, `${before.length} were done already`);
    await using second = await it.run();
    const done = await becomes(second, plan, "done", it);
    assert.deepEqual(done.progress, { waiting: 0, sent: 0, done: PLANNED, failed: 0, left: 0 });
    const wanted = await it.sql<{ id: string }>("select id from orders.outbox where event_type = 'order.placed'");
    const ids = arrivedAt("/killed").map(({ headers }) => headers["event-id"]);
    assert.deepEqual([...new Set(ids)].sort(), wanted.map(({ id }) => id).sort(), "these and no others");
    // What was on the wire when the process ended is sent again: at least once, as this destination promises.
    assert.ok(ids.length - PLANNED < 2_000, `${ids.length} arrivals`);
    const touched = await it.sql("select event_id from outbox_relay.audit where action = 'replay' group by 1");
    const [entries] = await it.sql<{ count: string }>(
      "select count(*) from outbox_relay.audit where action = 'replay'",
    );
    assert.deepEqual([touched.length, entries?.count], [PLANNED, String(PLANNED)], "each was released once");
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

  test("H1 F3 F2: two destinations: the canary of the second stops the plan before the rest, which goes on without it", async () => {
    await using it = await replayStage(server(), {
      OUTBOX_DESTINATIONS: JSON.stringify({
        shop: { url: `${receiver.origin}/shop` },
        mail: { url: `${receiver.origin}/mail` },
      }),
      OUTBOX_ROUTES: JSON.stringify([
        { types: "order.*", destination: "shop" },
        { types: "mail.*", destination: "mail" },
      ]),
    });
    await using running = await it.run();
    const said = "' answered 400 Bad Request; it said: no such customer ' || n";
    await it.bury({ count: 60, destination: "->shop", reason: `'http://shop'||${said}` });
    await it.bury({ count: 40, type: "order.paid", key: "'p' || n", destination: "->shop" });
    const broken = JSON.stringify({ "x-manner": `says:422:${Buffer.from("no such address").toString("base64")}` });
    const mails = { type: "mail.sent", key: "'m' || n", destination: "->mail", headers: broken };
    await it.bury({ count: 50, ...mails, reason: `'http://mail'||${said}` });

    await groupsAreFound(it);
    await nothingIsRefused(it, running);
    const plan = await planned(running, { all: true });
    assert.deepEqual(
      plan.strata.map(({ count, destination, type }) => `${count} ${type} to ${destination}`),
      ["60 order.placed to shop", "50 mail.sent to mail", "40 order.paid to shop"],
    );
    await change(running, plan, "run");
    const stopped = await becomes(running, plan, "stopped", it);
    assert.match(
      stopped.stopReason ?? "",
      /\(mail\.sent to mail, error \S+\).* failed again: .*; it said: no such address/,
    );
    assert.deepEqual(
      stopped.strata.map(({ failure }) => failure !== null),
      [false, true, false],
    );
    assert.ok(
      arrivedAt("/shop").length <= 2,
      `${arrivedAt("/shop").length} went before the canary of the other failed`,
    );
    assert.equal(arrivedAt("/mail").length, 0);
    const shown = await it.command("replay", "show", plan.id);
    assert.match(shown.stdout, /50 {2}mail\.sent to mail, error \S+, 0 done, 1 failed: stopped: /);
    const { body: again } = await change(running, plan, "run", { skipFailed: true });
    assert.equal(again.progress.left, 49);
    const done = await becomes(running, plan, "done", it);
    assert.deepEqual(done.progress, { waiting: 0, sent: 0, done: 100, failed: 1, left: 49 });
    assert.equal(arrivedAt("/shop").length, 100);

    await ambiguousIsRefused(it);
    await until("the failed one is dead again", async () => {
      return (await it.sql("select from outbox_relay.failed_events where resolved_at is null")).length === 67;
    });
    const looked = await it.command("dlq", "discard", "--all", "--reason", "a test", "--dry-run");
    assert.match(looked.stdout, /would discard 67 dead letters/);
    const discarded = await it.command("dlq", "discard", "--all", "--reason", "a test", "--yes");
    assert.deepEqual([discarded.code, discarded.stdout], [0, "67 dead letters discarded\n"], discarded.stderr);
    const [made] = await it.sql(
      "select action, state, items, reason from outbox_relay.replay_plans order by created_at desc",
    );
    assert.deepEqual(made, { action: "discard", state: "done", items: 67, reason: "a test" });
    assert.equal((await it.sql("select from outbox_relay.audit where action = 'discard'")).length, 67);
  });
});
