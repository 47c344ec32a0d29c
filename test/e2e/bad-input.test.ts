import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { ErrorCode } from "../../src/core/errors.ts";
import { type PostgresServer, startPostgres } from "../servers/postgres.ts";
import { until } from "../servers/until.ts";
import { BILLING, ORDERS } from "./outbox-tables.ts";
import { type LiveRelay, type Scene, withScene } from "./scene.ts";

let server: PostgresServer;
before(async () => {
  server = await startPostgres({ version: 18 });
});
after(() => server[Symbol.asyncDispose]());

interface BrokenTable {
  readonly rule: string;
  readonly breaks: (role: string) => string;
  readonly mends: (role: string) => string;
  /** An event, where the broken table takes one: some faults show only then. */
  readonly insertWhileBroken?: string;
  readonly code: ErrorCode;
  /** What the message must name. */
  readonly names: RegExp;
}

const BROKEN_TABLES: readonly BrokenTable[] = [
  {
    rule: "A7: a missing table is named, and read as soon as it appears",
    breaks: () => "alter table orders.outbox rename to elsewhere",
    mends: () => "alter table orders.elsewhere rename to outbox",
    code: "TABLE_MISSING",
    names: /orders\.outbox/,
  },
  {
    rule: "A7: a missing grant on the table is named, and no longer missed once it is given",
    breaks: (role) => `revoke update on orders.outbox from ${role}`,
    mends: (role) => `grant update on orders.outbox to ${role}`,
    insertWhileBroken:
      "insert into orders.outbox (aggregate_id, event_type, payload) values ('a', 'order.placed', '1')",
    code: "GRANT_MISSING",
    names: /relay_scene_\d+ lacks UPDATE on "orders"\."outbox"|permission denied for table outbox.*orders\.outbox/,
  },
  {
    rule: "A7: a missing grant on the schema is named, and no longer missed once it is given",
    breaks: (role) => `revoke usage on schema orders from ${role}`,
    mends: (role) => `grant usage on schema orders to ${role}`,
    code: "GRANT_MISSING",
    names: /relay_scene_\d+ lacks .*USAGE on schema orders|permission denied for schema orders/,
  },
  {
    rule: "A7: a missing column is named, and found once it is there",
    breaks: () => "alter table orders.outbox rename column payload to content",
    mends: () => "alter table orders.outbox rename column content to payload",
    insertWhileBroken:
      "insert into orders.outbox (aggregate_id, event_type, content) values ('a', 'order.placed', '1')",
    code: "COLUMN_MISSING",
    names: /payload.*orders\.outbox|orders\.outbox.*payload/,
  },
  {
    rule: "A7: a flag of the wrong type is named, and read once it is right",
    breaks: () => "alter table orders.outbox drop column published; alter table orders.outbox add published int",
    mends: () => `alter table orders.outbox drop column published;
      alter table orders.outbox add published boolean not null default false;
      update orders.outbox set published = published_at is not null`,
    insertWhileBroken:
      "insert into orders.outbox (aggregate_id, event_type, payload) values ('a', 'order.placed', '1')",
    code: "COLUMN_MISTYPED",
    names: /orders\.outbox/,
  },
];

describe("a broken table", { concurrency: 4 }, () => {
  for (const broken of BROKEN_TABLES) {
    test(broken.rule, () => withScene(server, [ORDERS, BILLING], (scene) => checkBrokenFromTheStart(scene, broken)));
    test(`${broken.rule}; while running`, () =>
      withScene(server, [ORDERS, BILLING], (scene) => checkBrokenWhileRunning(scene, broken)));
  }

  test("A7: a table that is dropped and made anew while the relay runs is read again", async () => {
    await withScene(server, [ORDERS, BILLING], async ({ arrived, insert, relay, stage }) => {
      const live = await relay();
      await arrived(await insert(ORDERS, [{}]));
      await stage.sql("create table orders.copy (like orders.outbox including all); drop table orders.outbox");
      const told = await live.waitFor("SourceBroken", ({ code }) => code === "TABLE_MISSING");
      assert.match(told.reason, /orders\.outbox/);
      await stage.sql(
        `alter table orders.copy rename to outbox; grant select, update on orders.outbox to ${stage.role}`,
      );
      await arrived(await insert(ORDERS, [{ key: "a" }, { key: null }]));
      assertCalm(live);
    });
  });

  test("A7 D4: a table whose rows cannot be marked is told, and its events are not sent over and over", async () => {
    await withScene(server, [ORDERS, BILLING], async ({ arrived, insert, relay, sink, stage }) => {
      await stage.sql(`
        create function orders.refuse() returns trigger language plpgsql as $$ begin raise 'rows are sealed'; end $$;
        create trigger sealed before update on orders.outbox execute function orders.refuse()`);
      const live = await relay();
      const [sealed] = await insert(ORDERS, [{ key: "a" }]);
      const told = await until("the fault is told", () => faultsOf(live)[0]);
      assert.match(told.reason, /orders\.outbox.*cannot be marked.*rows are sealed \[ROW_UNMARKED\]/);
      await arrived(await insert(BILLING, [{}]));
      assertCalm(live);
      await stage.sql("drop trigger sealed on orders.outbox");
      await until("the row is marked", async () => {
        return (await stage.sql("select from orders.outbox where published")).length === 1;
      });
      const sends = (await sink.attempts()).filter(({ id }) => id === sealed);
      assert.equal(sends.length, 1, "what was delivered is remembered until it can be written down");
    });
  });

  test("A7: columns that come and go while the relay runs change nothing for it", async () => {
    await withScene(server, [ORDERS], async ({ arrived, insert, relay, sink, stage }) => {
      await relay();
      const ids = await insert(ORDERS, [{}]);
      for (const change of [
        "add column note text not null default 'x'",
        "drop column note",
        "alter event_type type varchar(100)",
        "alter aggregate_id set default 'none'",
        "drop column correlation_id",
      ]) {
        await stage.sql(`alter table orders.outbox ${change}`);
        ids.push(...(await insert(ORDERS, [{}, {}])));
      }
      assert.deepEqual(await arrived(ids), ids);
      assert.equal((await sink.arrivals()).length, ids.length);
    });
  });
});

async function checkBrokenFromTheStart(scene: Scene, broken: BrokenTable): Promise<void> {
  const { arrived, insert, relay, stage } = scene;
  const waiting = await insert(ORDERS, [{ key: "a" }, { key: "a" }, { key: null }]);
  await stage.sql(broken.breaks(stage.role));
  const live = await relay();
  await assertVisibleAndHarmless(scene, live, broken);
  await stage.sql(broken.mends(stage.role));
  await live.waitFor("SourceRecovered");
  await arrived(waiting);
  assertCalm(live);
}

async function checkBrokenWhileRunning(scene: Scene, broken: BrokenTable): Promise<void> {
  const { arrived, insert, relay, sink, stage } = scene;
  const live = await relay();
  const before = await insert(ORDERS, [{ key: "a" }, { key: "b" }]);
  await arrived(before);
  await until("the events are marked", async () => {
    return (await stage.sql("select from orders.outbox where published")).length === before.length;
  });
  await stage.sql(broken.breaks(stage.role));
  if (broken.insertWhileBroken) await stage.sql(broken.insertWhileBroken);
  await assertVisibleAndHarmless(scene, live, broken);
  await stage.sql(broken.mends(stage.role));
  await insert(ORDERS, [{ key: "a" }, { key: null }]);
  const rows = await stage.sql<{ id: string }>("select id from orders.outbox");
  const ids = rows.map(({ id }) => id);
  await arrived(ids);
  await until(
    "all are marked",
    async () => (await stage.sql("select from orders.outbox where not published")).length === 0,
  );
  const ofOrders = (await sink.arrivals()).filter(({ id }) => ids.includes(id));
  // What was on its way when the table broke could not be marked, and only that may come again.
  assert.ok(ofOrders.length <= ids.length + (broken.insertWhileBroken ? 1 : 0), `${ofOrders.length} arrivals`);
  assertCalm(live);
}

/** The fault is told and names the thing, again and again, while the neighbour's events flow. */
async function assertVisibleAndHarmless(
  { arrived, insert }: Scene,
  live: LiveRelay,
  broken: BrokenTable,
): Promise<void> {
  const told = await until("the fault is told", () => faultsOf(live).find(({ code }) => code === broken.code));
  assert.equal(told.pipeline, "orders.outbox->sink");
  assert.match(told.reason, broken.names);
  await until("it is told more than once", () => faultsOf(live).length >= 4);
  await arrived(await insert(BILLING, [{ key: "a" }, { key: null }]));
  assert.ok(faultsOf(live).every(({ pipeline }) => pipeline === "orders.outbox->sink"));
}

function faultsOf(live: LiveRelay) {
  return [...live.told("SourceBroken"), ...live.told("LaneFailed")];
}

/** No hot loop: what is broken is told a few times a second at most, with growing pauses. */
function assertCalm(live: LiveRelay): void {
  const times = faultsOf(live).map(({ timestamp }) => timestamp);
  const busiest = Math.max(0, ...times.map((from) => times.filter((at) => at >= from && at < from + 1_000).length));
  assert.ok(busiest <= 20, `${busiest} errors within a second`);
}
