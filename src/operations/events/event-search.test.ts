import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import pg from "pg";
import { assertWithin } from "../../../test/servers/pace.ts";
import { type PostgresServer, startPostgres } from "../../../test/servers/postgres.ts";
import { isRelayError } from "../../core/errors.ts";
import { managedTableSql } from "../../postgres/managed/managed-table.sql.ts";
import { migrateUp } from "../../postgres/migrations/migrate.ts";
import { type Database, openDatabase } from "../../postgres/pool.ts";
import { groupDeadLetters } from "../dead-letters/dead-letter-groups.ts";
import { listDeadLetters, showDeadLetters } from "../dead-letters/dead-letter-list.ts";
import { parseDeadLetterChoice, parseEventFilter } from "../filter/filter-language.ts";
import { listKeys } from "../keys/key-list.ts";
import { type EventPage, listEvents } from "./event-list.ts";
import { listingsOf } from "./event-listing.ts";
import type { PageEnd } from "./event-page.sql.ts";
import { eventSources } from "./event-source.ts";
import { walk } from "./event-walk.ts";

const MANAGED = "shop.log";
const QUEUE = "shop.queue";
const PARCELS = "shop.parcels";
const LETTERS = 100_000;

/** A managed outbox, and a queue without an index for its order, such as a retired relay leaves behind. */
const TABLES = `create schema shop;
${managedTableSql({ table: { schema: "shop", table: "log" }, payload: "text", partition: "1 day", wakeUp: false })}
create table ${QUEUE} (id uuid primary key default gen_random_uuid(), event_type text not null, aggregate_id text,
  payload jsonb not null, correlation_id text, created_at timestamptz not null default clock_timestamp(), published_at timestamptz);
create table ${PARCELS} (id bigint generated always as identity primary key, event_type text not null, aggregate_id text,
  payload bytea not null, headers jsonb, created_at timestamptz not null default clock_timestamp(), published_at timestamptz);
insert into ${PARCELS} (event_type, aggregate_id, payload, headers)
  select 'parcel.sent', 'Parcel-' || n || '-x', case n % 3 when 0 then '\\xff00fe'::bytea when 1 then convert_to('parcel ' || n, 'UTF8')
    else convert_to(jsonb_build_object('parcel', jsonb_build_object('id', n, 'weights', jsonb_build_array(n, 7)))::text, 'UTF8') end,
    case n % 4 when 0 then '"none"' when 1 then null else jsonb_build_object('Tenant', 'acme-' || n % 2) end from generate_series(1, 3000) n;
insert into outbox_relay.pipelines (name, source_schema, source_table, lanes)
  values ('shop.log->out', 'shop', 'log', 2), ('shop.queue->out', 'shop', 'queue', 2), ('shop.queue->other', 'shop', 'queue', 2),
    ('shop.parcels->out', 'shop', 'parcels', 2);
insert into outbox_relay.lanes (pipeline, lane) select name, lane from outbox_relay.pipelines, generate_series(0, 1) lane`;

const fillLog = (from: number, to: number) => `insert into shop.log (event_type, event_key, payload, correlation_id)
  select 'order.placed', 'k' || n % 5000, '{"n": ' || n || '}', 'c' || n / 2 from generate_series(${from}, ${to}) n order by n`;
const fillQueue = (
  rows: number,
) => `insert into ${QUEUE} (event_type, aggregate_id, payload, correlation_id, created_at, published_at)
  select case n % 1000 when 7 then 'order.refunded' else 'order.placed' end, 'q' || n % 100, jsonb_build_object('n', n), 'c' || n,
    timestamptz '2026-01-01 00:00Z' + n * interval '1 s', case when n % 10 > 0 then now() end from generate_series(1, ${rows}) n`;

for (const version of [15, 18] as const) {
  describe(`PostgreSQL ${version}`, () => {
    let server: PostgresServer;
    let database: Database;
    const list = async (text: string, more: { limit?: number; cursor?: string } = {}) =>
      await listEvents({ database, columns: {} }, parseEventFilter(text, new Date()), more);
    const ids = async (text: string) => (await list(text)).events.map(({ key, source }) => `${source} ${key}`);
    const pages = async (text: string, limit: number) => {
      const found: EventPage["events"][number][] = [];
      for (let cursor: string | null = null; ; ) {
        const page = await list(text, { limit, ...(cursor === null ? {} : { cursor }) });
        found.push(...page.events);
        cursor = page.cursor;
        if (cursor === null) return found;
      }
    };
    before(async () => {
      server = await startPostgres({ version });
      database = openDatabase({ url: server.url });
      await migrateUp(database);
      await server.query(TABLES);
      await server.query(fillLog(1, version === 18 ? 120_000 : 20_000));
      await server.query(fillQueue(20_000));
      await server.query(letters(version === 18 ? LETTERS : 12_000));
      await server.query("analyze");
      // A vacuum builds the block filters.
      await server.query("vacuum shop.log");
    });
    after(async () => {
      await database.close();
      await server[Symbol.asyncDispose]();
    });

    test("F3 G4 an event is found by its id, key or correlation id, in every source, page by page, each once", async () => {
      const [event] = (await list("key:k42", { limit: 1 })).events;
      assert.equal(event?.source, MANAGED);
      assert.deepEqual(await ids(`id:${event?.id}`), [`${MANAGED} k42`]);
      assert.deepEqual(await ids(event?.id ?? ""), [`${MANAGED} k42`]);
      assert.deepEqual(
        (await list(`corr:${event?.correlationId}`, { limit: 2 })).events.length,
        2,
        "from both sources, or two",
      );
      const all = await pages("key:k42", 7);
      assert.equal(all.length, version === 18 ? 24 : 4);
      assert.equal(new Set(all.map(({ id }) => id)).size, all.length, "each once");
      assert.deepEqual(
        all,
        all.toSorted((left, right) => ((left.createdAt ?? "") < (right.createdAt ?? "") ? 1 : -1)),
      );
      const words = await pages("q7", 500);
      assert.deepEqual([words.length, new Set(words.map(({ id }) => id)).size], [2_200, 2_200], "q7, and q70 to q79");
      assert.deepEqual(await ids("nobody"), []);
      const old = await list("corr:c500");
      assert.equal(old.events.filter(({ source }) => source === MANAGED).length, 2, "far behind the newest ones");
    });

    test("F3 G4 a search without an index ends in time, reports its coverage, and continues from there", async () => {
      const target = { database, columns: {} };
      const filter = parseEventFilter("type:order.refunded", new Date());
      const source = (await eventSources(target, QUEUE)).usable[0] ?? assert.fail("there is none");
      const [listing] = listingsOf(source, database.tables, filter);
      const found: string[] = [];
      let looks = 0;
      for (let end: PageEnd | null = null; ; looks += 1) {
        // So little time that several reads are needed, and each makes progress.
        const deadlineMs = performance.now() + 60;
        const read = await walk(target, listing ?? assert.fail("no listing"), {
          after: end,
          rows: 3,
          since: undefined,
          deadlineMs,
        });
        found.push(...read.page.map(({ event }) => event.id));
        end = read.end;
        if (end === null && !read.isStuck) break;
        assert.ok(looks < 1_000, "it ends");
      }
      assert.deepEqual([found.length, new Set(found).size], [20, 20], `after ${looks} looks`);
      assert.ok(looks >= 6, "three at a time");
      assert.equal((await pages("type:order.refunded text:7", 6)).length, 20);
      const page = await list("type:order.refunded source:shop.queue");
      assert.deepEqual([page.events.length, page.cursor], [20, null]);
      assert.equal((await list("text:nowhere")).events.length, 0);
      assert.equal((await pages('text:"{\\"n\\": 19999}"', 5)).length, 2, "one in each source, as bytes");
      assert.equal((await list("since:2026-01-01T05:33:20Z until:2026-01-02 source:shop.queue")).events.length, 1);
    });

    test("F3 a bare word also finds keys that contain it, after exact matches, and a key takes a wildcard", async () => {
      const words = await pages("parcel-17", 60);
      assert.equal(words.length, 111, "17, 170 to 179, 1700 to 1799");
      assert.ok(words.every(({ key }) => key?.startsWith("Parcel-17")));
      const exact = await list("q1", { limit: 250 });
      assert.deepEqual([...new Set(exact.events.slice(0, 200).map(({ key }) => key))], ["q1"], "exact matches first");
      assert.ok(exact.events.slice(200).every(({ key }) => /^q1./.test(key ?? "")));
      assert.equal((await pages("key:Parcel-17*", 60)).length, 111);
      assert.equal((await pages("key:*-17-x", 60)).length, 1);
      assert.deepEqual((await list('key:"Parcel-17*"')).events, [], "in quotes it is literal");
      assert.deepEqual((await list("100%_")).events, [], "SQL wildcards are literal");
      const letters = await listDeadLetters(database, parseDeadLetterChoice('"EAD 17"', new Date()), { limit: 500 });
      assert.ok(letters.deadLetters.length > 100);
      assert.ok(letters.deadLetters.every(({ key }) => key?.startsWith("dead 17")));
    });

    test("F3 events are found by error, header and field of the payload, whatever bytes there are", async () => {
      const dead = await pages('error:"ADDRESS is missing"', 2);
      assert.deepEqual(dead.map(({ key }) => key).toSorted(), ["q10", "q20", "q30", "q40", "q50"]);
      assert.equal((await pages("error:yet", 50)).length, 5, "of those that are retried");
      assert.equal((await pages("error:yet state:dead", 50)).length, 0);
      assert.equal((await pages("error:gone state:discarded", 50)).length, 3);
      assert.deepEqual((await list("error:yet state:delivered")).events, []);
      const choice = parseDeadLetterChoice("error:missing source:shop.queue", new Date());
      assert.equal((await listDeadLetters(database, choice)).deadLetters.length, 10, "one for each pipeline");

      assert.equal((await pages("header:tenant=acme-1", 500)).length, 750);
      assert.equal((await pages("header:TENANT=acme-*", 500)).length, 1500);
      assert.equal((await pages("header:tenant key:Parcel-2-x", 500)).length, 1);
      assert.deepEqual((await list("header:tenant=acme")).events, []);

      assert.deepEqual(await ids("payload.parcel.id:1700"), [`${PARCELS} Parcel-1700-x`]);
      const some = await pages("payload.parcel.id:17* key:Parcel-17*", 7);
      assert.ok(some.length > 30 && some.every(({ key }) => Number(/\d+/.exec(key ?? "")?.[0]) % 3 === 2));
      assert.equal((await pages("payload.parcel.weights:7", 400)).length, 1000, "in a list");
      assert.equal((await pages("payload.n:19999", 5)).length, 2, "in a text and in jsonb");
      assert.deepEqual((await list("payload.id:1700")).events, [], "not at that path");
    });

    test("F3 a search by row reports how many rows it has read of how many, summed over its pages", async () => {
      const first = await list("payload.n:7 source:shop.queue", { limit: 1 });
      assert.deepEqual(
        first.covered.map(({ isComplete }) => isComplete),
        [true],
      );
      const some = await list("header:tenant source:shop.parcels payload.parcel.weights:7", { limit: 10 });
      const [covered] = some.covered;
      assert.deepEqual([covered?.source, covered?.total, covered?.isComplete], [PARCELS, 3_000, false]);
      assert.ok((covered?.looked ?? 0) >= 10 && (covered?.looked ?? 0) < 200, `${covered?.looked} rows`);
      const next = await list("header:tenant source:shop.parcels payload.parcel.weights:7", {
        limit: 10,
        cursor: some.cursor ?? "",
      });
      const seen = covered?.looked ?? 0;
      assert.ok((next.covered[0]?.looked ?? 0) > seen, `${next.covered[0]?.looked} after ${seen}`);
    });

    test("F3 a locked table is named quickly, and the others are shown", async () => {
      const client = new pg.Client({ connectionString: server.url });
      await client.connect();
      // A catalogue entry is cached briefly; without it the error for a locked table is another one.
      await list("", { limit: 1 });
      await client.query(`begin; lock table ${QUEUE} in access exclusive mode`);
      const startedMs = performance.now();
      const { broken, events } = await list("type:order.*", { limit: 3 });
      await client.end();
      assert.deepEqual([broken.map(({ source }) => source), events.length], [[QUEUE], 3]);
      assert.match(broken[0]?.reason ?? "", /took too long/);
      // 2 s, with all that is around it.
      await assertWithin(performance.now() - startedMs, 4_500, "the list");
    });

    test("F3 D5 all dead, retrying and discarded events are listed, however many there are", async () => {
      const dead = version === 18 ? LETTERS : 12_000;
      assert.equal((await list("state:dead source:shop.log", { limit: 500 })).events.length, 500);
      if (version === 15)
        assert.equal((await pages("state:dead source:shop.log", 500)).length, dead, "more than 10,000");
      const queue = await pages("source:shop.queue state:dead", 3);
      assert.deepEqual(
        queue.map(({ key }) => key).toSorted(),
        ["q10", "q20", "q30", "q40", "q50"],
        "once for two pipelines",
      );
      assert.deepEqual((await pages("state:retrying", 2)).length, 5);
      const [group] = await groupDeadLetters(database, {});
      assert.equal((await list(`group:${group?.group} type:order.* source:shop.log`, { limit: 5 })).events.length, 5);
      assert.equal((await list(`group:${group?.group.slice(0, 8)}`, { limit: 5 })).events.length, 5);
      await assert.rejects(list("group:unknown"), new RegExp(`No error group .*"unknown"\\. Groups: ${group?.group} `));
      const parked = await pages("state:parked source:shop.queue", 500);
      assert.ok(
        parked.length > 0 && parked.every(({ parkedBehind, state }) => state === "parked" && parkedBehind !== null),
      );
      const states = ["pending", "retrying", "parked", "dead", "delivered", "discarded"];
      const counts = await Promise.all(
        states.map(async (state) => (await pages(`state:${state} source:shop.queue`, 500)).length),
      );
      assert.equal(
        counts.reduce((sum, count) => sum + count, 0),
        20_000,
        `each event has one state: ${counts.join(" ")}`,
      );
    });

    test("F3 D5 100,000 dead letters of one error are one group, with a histogram, and are listed by page", async () => {
      const [group, ...others] = await groupDeadLetters(database, { source: "shop.log" });
      const count = version === 18 ? LETTERS : 12_000;
      assert.deepEqual([group?.count, others.length, group?.error], [count, 0, "topic <value> refused <n> bytes"]);
      assert.deepEqual([group?.histogram.length, group?.histogram.reduce((sum, it) => sum + it, 0)], [24, count]);
      assert.deepEqual([group?.types, group?.sources, group?.sampled], [["order.placed"], ["shop.log"], 2_000]);
      assert.match(group?.example ?? "", /^topic "?\S+ refused \d+ bytes$/, "the newest, unchanged");
      assert.deepEqual([group?.destinations.length, group?.status], [1, null]);
      const first = await listDeadLetters(database, { group: group?.group ?? "", type: "order.*" }, { limit: 2 });
      const next = await listDeadLetters(
        database,
        { group: group?.group ?? "" },
        { limit: 2, cursor: first.cursor ?? "" },
      );
      const all = [...first.deadLetters, ...next.deadLetters];
      assert.deepEqual([all.length, new Set(all.map(({ letterId }) => letterId)).size], [4, 4]);
      const [letter] = all;
      assert.equal((await showDeadLetters(database, letter?.letterId ?? ""))[0]?.id, letter?.id);
      assert.equal((await listDeadLetters(database, { word: letter?.id })).deadLetters.length, 1);
      assert.equal((await listDeadLetters(database, { until: new Date("2020-01-01") })).deadLetters.length, 0);
      assert.equal((await listDeadLetters(database, { text: '"n": 3}', source: "shop.log" })).deadLetters.length, 1);
    });

    test("F3 blocked keys are listed with their head and backlog, hot keys by number of events", async () => {
      const target = { database, columns: {} };
      const queue = await listKeys(target, { pipeline: "shop.queue->out" });
      const heads = queue.keys.map(({ head, key, kind, waiting }) => `${key} ${kind} ${head?.state} ${waiting?.count}`);
      assert.deepEqual(heads, [
        "q10 parked dead 199",
        "q20 parked dead 199",
        "q30 parked dead 199",
        "q40 parked dead 199",
        "q50 parked dead 199",
      ]);
      const retrying = await listKeys(target, { kind: "retrying" });
      assert.deepEqual(retrying.keys.map(({ key, pipeline }) => `${pipeline} ${key}`).slice(0, 1), [
        "shop.queue->other q0",
      ]);
      const first = await listKeys(target, { kind: "parked" }, { limit: 3 });
      const next = await listKeys(target, { kind: "parked" }, { limit: 3, cursor: first.cursor ?? "" });
      assert.equal(new Set([...first.keys, ...next.keys].map(({ key }) => key)).size, 6);
      assert.ok(first.keys.every(({ source, waiting }) => source === MANAGED && waiting?.count === 0));
      const [hot] = (await listKeys(target, { kind: "hot", pipeline: "shop.queue->out" })).keys;
      assert.deepEqual([hot?.kind, hot?.recent], ["hot", { count: 50, of: 5_000 }]);
    });

    test("G4 forged cursors are refused, whatever they contain", async () => {
      const forged = [
        { [QUEUE]: ["nonsense", "x"] },
        { [QUEUE]: ["2026-01-01", "'; drop table shop.queue; --"] },
        { [MANAGED]: ["9".repeat(40), "x"] },
        { [MANAGED]: ["1\0", "x"] },
        { [MANAGED]: "x" },
        [],
        7,
      ];
      for (const value of forged) {
        const cursor = Buffer.from(JSON.stringify([value, {}])).toString("base64url");
        await assert.rejects(
          list("", { cursor }),
          (error) => isRelayError(error, "CONFIG_INVALID"),
          JSON.stringify(value),
        );
      }
    });
  });
}

/**
 * Dead letters of the log with one error; in the queue five for two pipelines each, and five events that are retried.
 */
function letters(count: number): string {
  return `insert into outbox_relay.failed_events (pipeline, original_event_id, source_schema, source_table, event_type, event_key,
      payload, correlation_id, event_created_at, failure_reason, last_failed_at)
    select 'shop.log->out', event_id::text, 'shop', 'log', event_type, 'dead ' || id, convert_to(payload, 'UTF8'), correlation_id, created_at,
      'topic "orders" refused ' || id || ' bytes', now() - id * interval '1 s'
    from shop.log order by id limit ${count};
  insert into outbox_relay.failed_events (pipeline, original_event_id, source_schema, source_table, event_type, event_key, payload, failure_reason)
    select p, id::text, 'shop', 'queue', event_type, aggregate_id, '', 'the address is missing'
    from (select distinct on (aggregate_id) * from ${QUEUE} where published_at is null and aggregate_id in ('q10', 'q20', 'q30', 'q40', 'q50')
      order by aggregate_id, created_at) q, unnest(array['shop.queue->out', 'shop.queue->other']) p;
  insert into outbox_relay.holds (pipeline, lane, event_id, event_key, state, parks, attempts, reason)
    select pipeline, 0, original_event_id, event_key, 'dead', true, 3, failure_reason from outbox_relay.failed_events;
  insert into outbox_relay.holds (pipeline, lane, event_id, event_key, state, parks, attempts, reason, next_at)
    select 'shop.queue->other', 0, id::text, aggregate_id, 'retrying', true, 1, 'not yet', now() from (
      select distinct on (aggregate_id) * from ${QUEUE} where published_at is null and aggregate_id in ('q60', 'q70', 'q80', 'q90', 'q0')
      order by aggregate_id, created_at) q;
  insert into outbox_relay.failed_events (pipeline, original_event_id, source_schema, source_table, event_type, event_key, payload,
      failure_reason, resolved_at, resolution)
    select 'shop.queue->out', id::text, 'shop', 'queue', event_type, aggregate_id, '', 'gone', now(), 'discarded'
    from ${QUEUE} where published_at is not null and aggregate_id = 'q1' limit 3`;
}
