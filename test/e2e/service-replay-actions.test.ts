import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { resolve } from "node:path";
import { after, describe, test } from "node:test";
import type { FrozenPlan, PlanItem } from "../../src/operations/replay/frozen-plan.ts";
import { freePort } from "../servers/free-port.ts";
import { until, untilEqual } from "../servers/until.ts";
import { type DeadLetterStage, deadLetterStage, deliveredBy, untilDead } from "./dead-letter-stage.ts";
import { printed, publish, withManagedLog } from "./log-stage.ts";
import { apiClient, type OpenApiDocument } from "./openapi-client.ts";
import { startService } from "./service-process.ts";
import { serverOfFile, stagesOn } from "./service-stage.ts";
import type { Stage } from "./stage.ts";

const server = serverOfFile();
const managedStage = stagesOn(server, "managed_replays", []);

const folder = mkdtempSync(resolve(tmpdir(), "outbox-relay-edit-"));
after(() => rmSync(folder, { recursive: true }));

const FLAG = "orders.outbox";
const OPEN = "public.openoutbox_events";

async function withApi(it: DeadLetterStage) {
  const port = String(await freePort());
  const running = await it.run({ PORT: port, ON_EXHAUSTED: "park" });
  await running.becomes("healthy");
  const document = (await running.get("/openapi.json")).json() as unknown as OpenApiDocument;
  return Object.assign(running, { ask: apiClient(document, `http://127.0.0.1:${port}`) });
}

const json = async <T>(it: DeadLetterStage, ...args: readonly string[]): Promise<T> => {
  const { code, stderr, stdout } = await it.command(...args, "-o", "json");
  assert.notEqual(stdout, "", `${args.join(" ")}: ${code} ${stderr}`);
  return JSON.parse(stdout) as T;
};

/** A plan and what can be asked of it. */
async function planned({ ask }: Awaited<ReturnType<typeof withApi>>, body: object) {
  const { body: plan, status } = await ask<FrozenPlan>("POST", "/api/v1/replays", { body });
  assert.equal(status, 201, JSON.stringify(plan));
  const params = { id: plan.id };
  return {
    plan,
    show: async () => (await ask<FrozenPlan>("GET", "/api/v1/replays/{id}", { params })).body,
    items: async (state?: string) => {
      const query = state === undefined ? {} : { state };
      return (await ask<{ items: PlanItem[] }>("GET", "/api/v1/replays/{id}/items", { params, query })).body.items;
    },
    change: (verb: "run" | "pause" | "cancel", why = {}) =>
      ask<FrozenPlan & { readonly detail: string }>("POST", `/api/v1/replays/{id}/${verb}`, { params, body: why }),
  };
}

async function untilPlan({ sql }: Stage, id: string, state: FrozenPlan["state"]): Promise<void> {
  await until(`the plan is ${state}`, async () => {
    const [row] = await sql<{ state: string }>("select state from outbox_relay.replay_plans where id = $1", [id]);
    return row?.state === state;
  });
}

async function audited({ sql }: Stage, action: string): Promise<string[]> {
  const rows = await sql<{ actor: string }>("select actor from outbox_relay.audit where action = $1", [action]);
  return rows.map(({ actor }) => actor);
}

describe("replay plans and keys", { concurrency: 3 }, () => {
  test("F3 G4: a plan stops when the same error comes back, the others stay untouched; mended, it goes on", async () => {
    await using it = await deadLetterStage(server());
    await using running = await withApi(it);
    await it.write(FLAG, "a1! b1! c1! a2");
    await untilDead(it, 3);
    const { change, items, plan, show } = await planned(running, { all: true });
    assert.deepEqual([plan.count, plan.keys, Object.values(plan.byError)], [3, 3, [3]]);
    assert.match(plan.warnings.join(), /3 block their keys/);
    const all = await items();
    const [first, second, third] = all;
    const both = await Promise.all([change("run"), change("run")]);
    assert.deepEqual(both.map(({ status }) => status).sort(), [200, 409], "of two operators one is first");
    await untilPlan(it, plan.id, "stopped");
    const shown = await show();
    assert.match(shown.stopReason ?? "", new RegExp(`The same error came back with ${first?.id}: .*TOPIC_TEMPLATE`));
    assert.deepEqual(shown.progress, { waiting: 2, sent: 0, done: 0, failed: 1, left: 0 });
    await untilDead(it, 3);
    assert.equal(deliveredBy(running), "");
    for (const { id } of all) await it.mend(FLAG, id);
    const touch =
      "update outbox_relay.failed_events set last_failed_at = clock_timestamp() where original_event_id = $1";
    await it.sql(touch, [third?.id]);
    const again = await it.command("replay", "run", plan.id);
    assert.equal(again.code, 5, `${again.stderr}${again.stdout}`);
    assert.match(again.stdout, /is done: 1 done, 0 in flight, 1 failed, 1 skipped, 0 waiting/);
    const wanted = new RegExp(`^${second?.key}1( a2)?$`);
    await until("the second has arrived", () => wanted.test(deliveredBy(running)));
    const [left] = await items("left");
    assert.match(left?.reason ?? "", /has changed since the plan was created/);
    assert.equal((await change("run")).status, 409, "what is done is not run again");
    assert.deepEqual([(await audited(it, "plan-stopped")).length, (await audited(it, "plan-done")).length], [1, 1]);
  });

  test("F3 G4: a stale plan is not run, one that runs is paused and goes on, and one that is cancelled has ended", async () => {
    await using it = await deadLetterStage(server());
    await using running = await withApi(it);
    const ids = await it.write(FLAG, "a1! b1! c1!");
    await untilDead(it, 3);
    const stale = await planned(running, { q: "type:order.*" });
    await it.sql("update outbox_relay.replay_plans set created_at = now() - interval '25 hours'");
    const refused = await stale.change("run");
    assert.deepEqual(
      [refused.status, /more than 24 hours ago: create a new plan/.test(refused.body.detail)],
      [409, true],
    );
    assert.equal((await stale.change("pause")).status, 409, "it does not run");
    assert.equal((await stale.change("cancel", { reason: "old" })).body.state, "cancelled");
    assert.equal((await stale.change("run")).status, 409);
    for (const id of Object.values(ids)) await it.mend(FLAG, id);
    const slow = await planned(running, { all: true, ratePerSecond: 0.01 });
    await slow.change("run");
    await until("one has arrived", async () => (await slow.show()).progress.done > 0);
    assert.equal((await slow.change("pause", { reason: "lunch" })).body.state, "paused");
    assert.deepEqual((await slow.show()).progress, { waiting: 2, sent: 0, done: 1, failed: 0, left: 0 });
    const unserved = "select from outbox_relay.replay_plans where state = 'paused' and runner is null";
    await until("its runner has left it", async () => (await it.sql(unserved)).length === 1);
    assert.equal((await slow.change("run")).status, 200);
    await until("another one has arrived", async () => (await slow.show()).progress.done === 2);
    const cancelled = await it.command("replay", "cancel", slow.plan.id, "--reason", "enough");
    assert.deepEqual([cancelled.code, /is cancelled: 2 done/.test(cancelled.stdout)], [0, true], cancelled.stderr);
    assert.equal(deliveredBy(running).split(" ").length, 2);
    await untilDead(it, 1);
    const { plans } = await json<{ plans: FrozenPlan[] }>(it, "replay", "list");
    assert.deepEqual(
      plans.map(({ state }) => state),
      ["cancelled", "cancelled"],
    );
    assert.equal((await it.command("replay", "show", "nobody")).code, 4);
    const { body } = await running.ask<{ detail: string }>("POST", "/api/v1/replays", { body: { q: "typ:order" } });
    assert.match(body.detail, /"typ:order" at character 1 of the filter/);
    await it.sql(`update outbox_relay.lanes set position = '{"lsn": "0/1"}' where pipeline like 'mail.%'`);
    const wal = { subject: "delivered", q: "key:w source:mail.outbox" };
    const gone = await running.ask<{ detail: string }>("POST", "/api/v1/replays", { body: wal });
    assert.deepEqual([gone.status, /write-ahead log, which does not keep/.test(gone.body.detail)], [400, true]);
  });

  test("F3 B5: delivered events of flag and Open Outbox tables go out again, in order, and are delivered again", async () => {
    await using it = await deadLetterStage(server());
    await using running = await withApi(it);
    await it.write(FLAG, "a1 a2 b1!");
    await it.write(OPEN, "c1 c2");
    await untilDead(it, 1);
    await until("all that can be are out", () => deliveredBy(running).split(" ").length === 4);
    const refused = await it.command("replay", "plan", "--delivered");
    assert.deepEqual([refused.code, /No delivered events are selected/.test(refused.stderr)], [2, true]);
    const done = await it.command("replay", "type:order.*", "--delivered", "--yes", "--reason", "lost by the consumer");
    assert.equal(done.code, 0, `${done.stderr}${done.stdout}`);
    assert.match(done.stderr, /4 were delivered and are sent again/);
    await until("all have arrived again", () => deliveredBy(running).split(" ").length === 8);
    const names = deliveredBy(running).split(" ");
    assert.deepEqual(
      names.filter((name) => name.startsWith("a")),
      ["a1", "a2", "a1", "a2"],
    );
    assert.deepEqual(
      names.filter((name) => name.startsWith("c")),
      ["c1", "c2", "c1", "c2"],
    );
    assert.equal(names.includes("b1"), false);
    const open = await it.sql<{ status: string }>(`select distinct status from ${OPEN}`);
    assert.deepEqual(open, [{ status: "DELIVERED" }]);
    const waiting = await it.sql("select from orders.outbox where not published or published_at is null");
    assert.deepEqual([waiting.length, (await it.sql("select from outbox_relay.holds")).length], [1, 1], "the dead one");
    assert.equal((await audited(it, "replay")).length, 4);
  });

  test("F3 E1: delivered events of a managed outbox go out again, the log itself stays as it is", async () => {
    await using it = await withManagedLog(await managedStage());
    await publish(it, 10);
    const port = String(await freePort());
    await using running = startService(["run"], { ...it.env, PORT: port, POLL_INTERVAL_MS: "100" });
    const out = () => printed({ stdout: running.stdout() }).map(({ id }) => id);
    await until("all are out", () => out().length === 10);
    const before = out();
    const document = (await running.get("/openapi.json")).json() as unknown as OpenApiDocument;
    const ask = apiClient(document, `http://127.0.0.1:${port}`);
    const body = { subject: "delivered", q: "key:k1" };
    const plan = await until("they count as delivered", async () => {
      const { body: made, status } = await ask<FrozenPlan>("POST", "/api/v1/replays", { body });
      assert.ok(status === 201 || status === 404, JSON.stringify(made));
      return made.count === 2 && made;
    });
    await ask("POST", "/api/v1/replays/{id}/run", { params: { id: plan.id }, body: {} });
    await untilPlan(it, plan.id, "done");
    const wanted = await it.sql<{ event_id: string }>(
      "select event_id from shop.log where event_key = 'k1' order by id",
    );
    await untilEqual("they have arrived", out, [...before, ...wanted.map(({ event_id }) => event_id)]);
    assert.equal((await it.sql("select from outbox_relay.parked")).length, 0);
    await publish(it, 5);
    await until("it reads on", () => out().length === 17);
  });

  test("F3 G4: a dead letter gets another payload and goes out with it; the copy and the audit keep what was there", async () => {
    await using it = await deadLetterStage(server());
    await using running = await withApi(it);
    const { a1 } = await it.write(FLAG, "a1! a2");
    const { c1 } = await it.write(OPEN, "c1!");
    await untilDead(it, 2);
    const file = resolve(folder, "payload.json");
    const headers = resolve(folder, "headers.json");
    writeFileSync(headers, '{"tenant": "acme"}');
    writeFileSync(file, '{"event": "edited", ');
    const edit = () =>
      it.command("dlq", "edit", a1!, "--payload-file", file, "--headers-file", headers, "--reason", "a typo");
    const wrong = await edit();
    assert.deepEqual([wrong.code, /The payload is not JSON/.test(wrong.stderr)], [2, true], wrong.stderr);
    await untilDead(it, 2);
    writeFileSync(file, '{"event": "edited"}');
    const edited = await edit();
    assert.equal(edited.code, 0, edited.stderr);
    await until("it and what waited are out", () => deliveredBy(running) === "edited a2");
    assert.equal((await edit()).code, 4, "it is no dead letter any more");
    const post = (body: object) => running.ask("POST", "/api/v1/dead-letters/{id}/edit", { params: { id: c1! }, body });
    const payload = { encoding: "base64", text: Buffer.from('{"event": "bytes"}').toString("base64") };
    assert.equal((await post({ payload: { encoding: "base64", text: "§" }, reason: "no" })).status, 400);
    assert.equal((await post({ payload, headers: { tenant: "acme" }, reason: "by hand" })).status, 200);
    await until("it is out too", () => deliveredBy(running).endsWith("bytes"));
    const copies = await it.sql<{ payload: string }>(
      "select convert_from(payload, 'UTF8') as payload from outbox_relay.failed_events",
    );
    assert.ok(
      copies.every((copy) => copy.payload.includes("9007199254740993")),
      "as they were",
    );
    const [entry] = await it.sql<{ detail: { before: { bytes: number }; after: { bytes: number; sha256: string } } }>(
      "select detail from outbox_relay.audit where action = 'edit' and event_id = $1",
      [a1],
    );
    assert.equal(entry?.detail.after.bytes, 19);
    assert.match(entry?.detail.after.sha256 ?? "", /^[0-9a-f]{64}$/);
    assert.doesNotMatch(JSON.stringify(entry), /edited/);
  });

  test("F3 G4: the head of a key is tried again, skipped or discarded, and the key goes on", async () => {
    await using it = await deadLetterStage(server());
    await using running = await withApi(it);
    const { a1 } = await it.write(FLAG, "a1! a2");
    await it.write(FLAG, "b1! b2 d1! d2");
    await it.write(OPEN, "c1! c2");
    await untilDead(it, 4);
    const key = (verb: string, name: string, ...more: string[]) => it.command("keys", verb, FLAG, name, ...more);
    assert.equal((await key("retry", "nobody")).code, 4);
    assert.equal((await key("skip", "b")).code, 2, "a reason is required");
    assert.equal((await key("skip", "b", "--reason", "not needed")).code, 0);
    assert.equal((await key("skip", "b", "--reason", "again")).code, 4, "nothing is to be done twice");
    assert.equal((await key("discard", "d", "--reason", "sent by hand")).code, 0);
    await it.mend(FLAG, a1!);
    assert.equal((await key("resume", "a")).code, 0);
    const discarded = await running.ask<{ changed: string[] }>("POST", "/api/v1/keys/discard", {
      body: { pipeline: `${OPEN}->stdout`, key: "c", reason: "a test" },
    });
    assert.deepEqual([discarded.status, discarded.body.changed.length], [200, 1]);
    const unknown = await running.ask("POST", "/api/v1/keys/retry", { body: { pipeline: "nobody", key: "c" } });
    assert.equal(unknown.status, 404);
    const sorted = () => deliveredBy(running).split(" ").sort().join(" ");
    await until("the keys go on", () => sorted() === "a1 a2 b2 c2 d2");
    assert.ok(deliveredBy(running).indexOf("a1") < deliveredBy(running).indexOf("a2"));
    await untilDead(it, 1);
    for (const action of ["key-skip", "key-resume"]) assert.equal((await audited(it, action)).length, 1, action);
    assert.equal((await audited(it, "key-discard")).length, 2);
  });
});
