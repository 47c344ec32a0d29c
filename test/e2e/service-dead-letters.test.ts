import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { discardDeadLetters } from "../../src/operations/dead-letters/dead-letter-discard.ts";
import type { EventFilter } from "../../src/operations/events/event-filter.ts";
import { type EventPage, listEvents } from "../../src/operations/events/event-list.ts";
import type { Status } from "../../src/operations/pipelines/status.ts";
import { replayDeadLetter } from "../../src/operations/replay/replay.ts";
import { type Database, openDatabase } from "../../src/postgres/pool.ts";
import { assertWithin } from "../servers/pace.ts";
import { until } from "../servers/until.ts";
import { deadLetterStage, deliveredBy, untilDead } from "./dead-letter-stage.ts";
import { startService } from "./service-process.ts";
import { serverOfFile } from "./service-stage.ts";
import type { Stage } from "./stage.ts";

const server = serverOfFile();

const FLAG = "orders.outbox";
const OPEN = "public.openoutbox_events";
const WORKER = "mail.outbox";
/** Far sooner than the relay looks by itself. */
const NOTICED_MS = 15_000;

/** Waits until relays have noticed what a command did. */
async function untilNoticed(what: string, condition: () => boolean): Promise<void> {
  const startedMs = performance.now();
  await until(what, condition);
  await assertWithin(performance.now() - startedMs, NOTICED_MS, what);
}

describe("dead letters", { concurrency: 3 }, () => {
  test("F2 D5 A10: a replayed head goes out before what is parked behind it, soon, with a relay running", async () => {
    await using it = await deadLetterStage(server());
    await using running = await it.run();
    const { a1 } = await it.write(FLAG, "a1! a2 b1 a3");
    await untilDead(it, 1);
    await until("the other key is delivered", () => deliveredBy(running) === "b1");
    await it.mend(FLAG, a1!);
    const replayed = await it.command("dlq", "replay", a1!, "--yes", "--reason", "it has its tenant now");
    assert.deepEqual([replayed.code, replayed.stdout], [0, REPLAYED_ONE], replayed.stderr);
    await untilNoticed("all are delivered", () => deliveredBy(running) === "b1 a1 a2 a3");
    const [letter] = await it.sql("select resolution, resolution_note, failure_count from outbox_relay.failed_events");
    assert.deepEqual(letter, { resolution: "replayed", resolution_note: "it has its tenant now", failure_count: 1 });
    await until("nothing waits", async () => (await running.get("/health")).json().unpublishedEventCount === 0);
  });

  test("F2 D5 B5: a replayed Open Outbox row is PENDING again and goes out before what its death kept back", async () => {
    await using it = await deadLetterStage(server());
    await using running = await it.run({ ON_EXHAUSTED: "park" });
    const { c1 } = await it.write(OPEN, "c1! c2 d1 c3");
    await untilDead(it, 1);
    await until("the other key is delivered", () => deliveredBy(running) === "d1");
    await it.mend(OPEN, c1!);
    const replayed = await it.command("dlq", "replay", "--source", OPEN, "--yes");
    assert.deepEqual([replayed.code, replayed.stdout], [0, REPLAYED(1)], replayed.stderr);
    assert.match(replayed.stderr, /^canary: one event of each .*\nby plan \S+\n$/m);
    await untilNoticed("all are delivered", () => deliveredBy(running) === "d1 c1 c2 c3");
    await until("all rows say so", async () => {
      const rows = await it.sql(
        `select from ${OPEN} where status = 'DELIVERED' and delivered_at is not null and locked_at is null`,
      );
      return rows.length === 4;
    });
    assert.deepEqual(await resolutions(it), ["replayed"]);
  });

  test("F2 D5: a discarded head is never sent, what waited behind it goes on, its copy keeps who and why", async () => {
    await using it = await deadLetterStage(server());
    await using running = await it.run({ ON_EXHAUSTED: "park" });
    await it.write(FLAG, "a1! a2");
    await it.write(OPEN, "c1! c2");
    await it.write(WORKER, "w1! w2");
    await untilDead(it, 3);
    const discarded = await it.command("dlq", "discard", "--type", "order.*", "--reason", "sent by hand", "--yes");
    assert.deepEqual([discarded.code, discarded.stdout], [0, "3 dead letters discarded\n"], discarded.stderr);
    const sorted = () => deliveredBy(running).split(" ").sort().join(" ");
    await untilNoticed("the followers are delivered", () => sorted() === "a2 c2 w2");
    const letters = await it.sql<{ resolution: string; resolution_note: string; who: boolean }>(
      "select resolution, resolution_note, resolved_by <> '' as who from outbox_relay.failed_events",
    );
    assert.deepEqual(letters, Array(3).fill({ resolution: "discarded", resolution_note: "sent by hand", who: true }));
    const told = await it.sql("select from outbox_relay.pipelines where holds_change > 0");
    assert.equal(told.length, 3, "the relays are told, so that the keys go on at once");
    const shown = JSON.parse((await it.command("events", "list", "--state", "discarded", "-o", "json")).stdout);
    assert.equal(shown.events.length, 3);
    await until("its row is marked, so that nobody reads it again", async () => {
      return (await it.sql("select from orders.outbox where not published or published_at is null")).length === 0;
    });
    const unsent = async () => {
      const open = await it.sql<{ status: string }>(`select status from ${OPEN} where status <> 'DELIVERED'`);
      const worker = await it.sql<{ status: string }>(`select status from ${WORKER} where status <> 'Dispatched'`);
      return [...open, ...worker].map(({ status }) => status).join();
    };
    await until("a row that can say so tells the truth", async () => (await unsent()) === "DEAD,Failed");
    await until("the gauge counts no dead letter", async () => {
      return /^outbox_relay_failed_events 0$/m.test((await running.get("/metrics")).body);
    });
    await running.becomes("healthy");
  });

  test("D5 F2 A10: without a relay the next one does it: what dies again waits again, what is mended goes in order", async () => {
    await using it = await deadLetterStage(server());
    const names = { [FLAG]: "a1! a2", [OPEN]: "c1! c2", [WORKER]: "w1! w2 w3" };
    const ids: Record<string, string> = {};
    for (const [table, events] of Object.entries(names)) Object.assign(ids, await it.write(table, events));
    assert.equal((await it.command("run", "--once")).code, 5);
    await untilDead(it, 3);
    const status = JSON.parse((await it.command("status", "-o", "json")).stdout) as Status;
    const dead = status.pipelines.map(({ deadLetters, source }) => `${source} ${deadLetters}`);
    assert.deepEqual(dead, ["billing.outbox_events 0", `${WORKER} 1`, `${FLAG} 1`, `${OPEN} 1`]);
    const first = await it.command("dlq", "replay", "--all", "--yes");
    assert.deepEqual([first.code, /no relay is running/.test(first.stderr)], [5, true], first.stderr);
    await untilDead(it, 3);
    assert.equal((await it.command("run", "--once")).code, 5);
    await untilDead(it, 3);
    const again = await it.sql<{ failures: number; errors: number }>(
      "select failure_count as failures, jsonb_array_length(errors) as errors from outbox_relay.failed_events order by 2",
    );
    const untried = { failures: 1, errors: 1 };
    assert.deepEqual(again, [untried, untried, { failures: 1, errors: 2 }], "the canary alone; all errors are kept");
    const [plan] = await it.sql<{ state: string; stop_reason: string }>(
      "select state, stop_reason from outbox_relay.replay_plans",
    );
    assert.deepEqual([plan?.state, /TOPIC_TEMPLATE/.test(plan?.stop_reason ?? "")], ["stopped", true]);
    await it.mend(FLAG, ids.a1!);
    await it.mend(OPEN, ids.c1!);
    await it.mend(WORKER, ids.w1!);
    assert.equal((await it.command("dlq", "replay", "--all", "--yes")).code, 5, "no relay is running");
    const last = await it.command("run", "--once");
    assert.equal(last.code, 0, last.stderr);
    const order = deliveredBy(last).split(" ");
    assert.deepEqual(
      order.filter((name) => name.startsWith("w")),
      ["w1", "w2", "w3"],
    );
    assert.deepEqual(
      order.filter((name) => name.startsWith("a")),
      ["a1", "a2"],
    );
    assert.deepEqual(
      order.filter((name) => name.startsWith("c")),
      ["c1"],
      "it was skipped, so c2 is out already",
    );
  });

  test("G6 D5: the commands tell what is there, ask before they act, and end with the code that says how it went", async () => {
    await using it = await deadLetterStage(server());
    const { a1, a2, b1 } = await it.write(FLAG, "a1! a2 b1! d1");
    const { c1 } = await it.write(OPEN, "c1! c2");
    assert.equal((await it.command("run", "--once")).code, 5);

    const list = JSON.parse((await it.command("dlq", "list", "--limit", "2", "-o", "json")).stdout);
    assert.deepEqual([list.deadLetters.length, list.deadLetters[0].resolution], [2, null]);
    const rest = await it.command("dlq", "list", "--cursor", list.cursor, "-o", "json");
    assert.equal(JSON.parse(rest.stdout).deadLetters.length, 1);
    const { groups } = JSON.parse((await it.command("dlq", "groups", "-o", "json")).stdout);
    assert.deepEqual([groups.length, groups[0].count, groups[0].keys], [1, 3, 3], JSON.stringify(groups));
    const { deadLetters } = JSON.parse((await it.command("dlq", "show", a1!, "-o", "json")).stdout);
    assert.match(deadLetters[0].payload.text, /"number": ?9007199254740993/);
    assert.equal(deadLetters[0].errors.length, 1);

    const plan = await it.command("dlq", "replay", "--group", groups[0].group, "--dry-run");
    assert.match(plan.stdout, /would replay 3 dead letters of 3 keys/);
    assert.match(plan.stdout, /2 block their keys.*in order after them/);
    assert.match(plan.stdout, /1 was skipped: .*arrive late/);
    const refused = await it.command("dlq", "replay", "--all");
    assert.deepEqual([refused.code, /add --yes/.test(refused.stderr)], [2, true], "nobody to ask");
    assert.equal((await it.command("dlq", "replay", "--yes")).code, 2, "nothing says which");
    assert.equal((await it.command("dlq", "discard", a1!, "--yes")).code, 2, "a reason is required");
    await untilDead(it, 3);
    const none = await it.command("dlq", "replay", a2!, "nobody", "--yes");
    assert.deepEqual([none.code, /No open dead letter with id .*nobody/.test(none.stderr)], [4, true]);
    assert.equal((await it.command("dlq", "show", "nobody")).code, 4);
    const partly = await it.command("dlq", "replay", c1!, "nobody", "--yes");
    assert.deepEqual([partly.code, /no open dead letter with id nobody/.test(partly.stderr)], [5, true], partly.stderr);
    assert.equal((await it.command("dlq", "replay", c1!, "--yes")).stdout, REPLAYED_ONE, "one event goes at once");
    await it.sql("delete from orders.outbox where id = $1", [a1]);
    await it.sql(`insert into outbox_relay.failed_events
        (pipeline, original_event_id, source_schema, source_table, event_type, payload, failure_reason)
      select s || '.outbox->x', '7', s, 'outbox', 'order.placed', '', 'no' from unnest(array['orders', 'mail']) s`);
    const twice = await it.command("dlq", "discard", "7", "--reason", "which?", "--yes");
    assert.deepEqual([twice.code, /7 is a dead letter of .* and of .*: name the source/.test(twice.stderr)], [2, true]);
    const gone = await it.command("dlq", "replay", a1!, "--yes");
    assert.deepEqual([gone.code, /its row is gone/.test(gone.stderr)], [5, true]);
    assert.equal((await it.command("dlq", "discard", a1!, "--reason", "deleted", "--yes")).code, 0);
    await untilDead(it, 3);

    await using database = disposable(openDatabase({ url: it.relayUrl }));
    const target = { database, columns: {} };
    const [author, choice] = [{ by: "me", reason: "a race" }, { ids: [b1!] }];
    const both = await Promise.all([
      replayDeadLetter(target, { ids: [b1!] }, author),
      discardDeadLetters(target, { choice, author }),
    ]);
    assert.equal(both[0].done + both[1].done, 1, "of two people who decide at once, one does");
  });

  test("G6: events are listed by state, key, type and time, page by page, shown whole and followed", async () => {
    await using it = await deadLetterStage(server());
    const { a1, a2 } = await it.write(FLAG, "a1! a2 b1 b2 b3");
    await it.write(OPEN, "c1");
    assert.equal((await it.command("run", "--once")).code, 5);
    const json = async (...args: string[]) => JSON.parse((await it.command(...args, "-o", "json")).stdout);
    const [dead] = (await json("events", "list", "--state", "dead", "--source", FLAG, "--key", "a")).events;
    assert.deepEqual([dead.id, dead.attempts, /TOPIC_TEMPLATE/.test(dead.reason)], [a1, 1, true]);
    const text = await it.command("events", "list", "--type", "order.*", "--since", "1h", "--limit", "2");
    assert.match(text.stdout, /^CREATED .*\n.* delivered +order\.placed +c .*\n.* delivered +order\.placed +b /);
    assert.match(text.stderr, /next page: --cursor \S+/);
    await using database = disposable(openDatabase({ url: it.relayUrl }));
    const target = { database, columns: {} };
    const names = async (filter: EventFilter) => {
      const { events } = await listEvents(target, filter);
      return events.map(({ key, state }) => `${key} ${state}`).join(", ");
    };
    assert.equal(await names({ state: "parked" }), "a parked");
    assert.equal(await names({ state: "pending" }), "");
    assert.equal(await names({ state: "delivered", source: OPEN }), "c delivered");
    assert.equal(await names({ key: "b", type: "*.placed" }), "b delivered, b delivered, b delivered");
    assert.equal(await names({ type: "invoice.*" }), "");
    assert.equal(await names({ until: new Date(Date.now() - 3_600_000) }), "");
    const ids: string[] = [];
    for (let cursor: string | null | undefined; cursor !== null; ) {
      const page: EventPage = await listEvents(target, {}, { limit: 2, cursor });
      ids.push(...page.events.map(({ id }) => id));
      cursor = page.cursor;
    }
    assert.deepEqual([ids.length, new Set(ids).size], [6, 6], "each once");
    await it.sql(`revoke update on billing.outbox_events from ${it.role}`);
    const { broken, events } = await listEvents(target, {});
    assert.deepEqual([broken.map(({ source }) => source), events.length], [["billing.outbox_events"], 6], "A7");

    const event = await json("events", "show", a1!);
    assert.deepEqual([event.state, event.hold.parks, event.hold.errors.length], ["dead", true, 1]);
    assert.deepEqual(event.followers, { count: 1, isMore: false });
    assert.match(event.payload.text, /9007199254740993/);
    assert.equal((await json("events", "show", a2!)).parkedBehind, a1);
    const { stdout } = await it.command("events", "show", a1!, "--raw");
    const [row] = await it.sql<{ payload: string }>("select payload::text from orders.outbox where id = $1", [a1]);
    assert.equal(stdout, row?.payload, "the bytes as they are stored");
    assert.equal((await it.command("events", "show", "nobody")).code, 4);
    assert.equal((await it.command("events", "list", "--since", "yesterday")).code, 2);

    await using tail = startService(["events", "tail", "-o", "json"], it.env);
    await until("it has looked once", async () => {
      await it.write(FLAG, "e1");
      return tail.stdout().includes('"what":"new"');
    });
    await using running = await it.run();
    await until("it tells of the delivery", () => /"what":"changed".*"state":"delivered"/.test(tail.stdout()));
    tail.kill("SIGINT");
    assert.equal((await tail.ended).code, 0);
    running.kill("SIGTERM");
  });
});

function disposable(database: Database): Database & AsyncDisposable {
  return { ...database, [Symbol.asyncDispose]: () => database.close() };
}

async function resolutions({ sql }: Stage): Promise<string[]> {
  const rows = await sql<{ resolution: string }>("select resolution from outbox_relay.failed_events");
  return rows.map(({ resolution }) => resolution);
}

const REPLAYED_ONE = "the dead letter is replayed: a running relay sends it within seconds\n";
const REPLAYED = (count: number) => `${count} dead letter${count === 1 ? "" : "s"} replayed and delivered\n`;
