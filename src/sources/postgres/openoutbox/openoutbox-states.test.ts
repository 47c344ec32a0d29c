import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { PostgresServer } from "../../../../test/servers/postgres.ts";
import { AT_ONCE, DEAD_PARKED, DEAD_SKIPPED, LATER, type Owner } from "../../../testing/contracts/store-stage.ts";
import { onStage, startServer } from "./fixture.test.ts";

const heads = (owner: Owner, names: string) => owner.store.claimHeads(owner.takeoverOf().grant, owner.stage.ids(names));
const review = (owner: Owner) => owner.store.reviewHolds(owner.takeoverOf().grant);

for (const version of [15, 18] as const) {
  describe(`PostgreSQL ${version}`, () => {
    let server: PostgresServer;
    before(async () => {
      server = await startServer(version);
    });
    after(async () => await server[Symbol.asyncDispose]());

    test("B3 B5 every transition leaves the row as the contract has it, attempts rise at failures alone", () =>
      onStage(server, async (stage, fixture) => {
        await stage.write("a1");
        const owner = await stage.own();
        let before = await fixture.row(stage.id("a1"));
        const step = async (status: string, attempts: number, lastError: string | null) => {
          const row = await fixture.row(stage.id("a1"));
          assert.deepEqual([row.status, row.attempts, row.last_error], [status, attempts, lastError]);
          assert.ok(row.updated_at > before.updated_at, "updated_at rises with each change");
          assert.deepEqual(await fixture.broken(), []);
          before = row;
        };
        await owner.read();
        await step("DELIVERING", 0, null);
        assert.match(before.locked_by ?? "", new RegExp(`^it's us/\\d{16}/${owner.id}$`));
        await owner.settle({ handedBack: stage.ids("a1") });
        await step("PENDING", 0, null);
        await owner.read();
        await step("DELIVERING", 0, null);
        await owner.settle({ failed: [stage.failure("a1", AT_ONCE, { reason: "first" })] });
        await step("PENDING", 1, "first");
        await heads(owner, "a1");
        await step("DELIVERING", 1, "first");
        await owner.settle({ failed: [stage.failure("a1", AT_ONCE, { attempts: 2, reason: "second" })] });
        await step("PENDING", 2, "second");
        await heads(owner, "a1");
        await owner.settle({ delivered: stage.ids("a1"), releasedHolds: stage.ids("a1") });
        await step("DELIVERED", 2, "second");
      }));

    test("H1 a delivered row whose mark is undone is held, never shown again, and marked once it can be", () =>
      onStage(server, async (stage, fixture) => {
        await fixture.admin.query(`create or replace function undo() returns trigger language plpgsql as $f$ begin
            if new.status <> 'DELIVERED' then return new; end if;
            if old.partition_key = 'a' then return null; end if;
            if old.partition_key = 'c' then raise exception 'never'; end if;
            return old; end $f$;
          create trigger undo before update on ${fixture.table} for each row execute function undo()`);
        await stage.write("a1 b1 c1");
        const owner = await stage.own();
        await owner.read();
        const { missing, refusal, unmarked } = await owner.settle({ delivered: stage.ids("a1 b1 c1") });
        assert.deepEqual([missing, [...(unmarked?.values() ?? [])]], [[], ["refused", "refused", "refused"]]);
        assert.equal(refusal, "never");
        assert.deepEqual(
          (await review(owner)).map(({ unmarked }) => unmarked),
          ["refused", "refused", "refused"],
        );
        await owner.die();
        const successor = await stage.own();
        assert.equal(stage.show(await successor.read()), "");
        await fixture.admin.query(`drop trigger undo on ${fixture.table}`);
        assert.deepEqual(await review(successor), []);
        assert.equal(await stage.delivered(), "a1 b1 c1");
      }));

    test("B3 nothing is claimed before available_at, neither by a run nor as a head", () =>
      onStage(server, async (stage, fixture) => {
        await stage.write("a1 b1");
        await fixture.admin.query(
          `update ${fixture.table} set available_at = now() + interval '1 hour' where event_id = $1`,
          [stage.id("a1")],
        );
        const owner = await stage.own();
        assert.equal(stage.show(await owner.read()), "b1");
        assert.equal(await owner.store.probe(owner.grants), false);
        await owner.settle({ failed: [stage.failure("b1", LATER)] });
        const { available_at } = await fixture.row(stage.id("b1"));
        assert.ok(available_at.getTime() > Date.now() + 500_000, `available at ${available_at.toISOString()}`);
        assert.deepEqual(await heads(owner, "b1"), { events: [], gone: [] });
      }));

    test("B3 a final error is DEAD at once, with its reason in the row and a dead letter", () =>
      onStage(server, async (stage, fixture) => {
        await stage.write("a1 b1");
        const owner = await stage.own();
        await owner.read();
        const failed = [
          stage.failure("a1", DEAD_PARKED),
          stage.failure("b1", DEAD_SKIPPED, { reason: "zero \0 byte" }),
        ];
        await owner.settle({ failed });
        const [parked, skipped] = [await fixture.row(stage.id("a1")), await fixture.row(stage.id("b1"))];
        assert.deepEqual([parked.status, parked.attempts, parked.last_error], ["DEAD", 1, "a1 failed"]);
        assert.deepEqual([skipped.status, skipped.last_error], ["DEAD", "zero \uFFFD byte"]);
        assert.equal(await stage.dead(), "a1 b1");
        // Only the one that parks its key needs a hold.
        assert.equal(stage.showIds((await review(owner)).map(({ id }) => id)), "a1");
      }));

    test("B3 a DEAD row under park keeps its key waiting; set back by a person it comes first, with its attempts", () =>
      onStage(server, async (stage, fixture) => {
        await stage.write("a1 a2");
        const owner = await stage.own();
        await owner.read();
        const failed = [stage.failure("a1", DEAD_PARKED, { attempts: 3 })];
        await owner.settle({ failed, handedBack: stage.ids("a2") });
        assert.equal(await owner.sees(), "");
        await fixture.admin.query(`update ${fixture.table} set status = 'PENDING', attempts = 1 where event_id = $1`, [
          stage.id("a1"),
        ]);
        const [hold] = await review(owner);
        assert.deepEqual([hold?.state, hold?.parks, hold?.attempts], ["retrying", true, 1]);
        assert.equal(await stage.dead(), "");
        assert.equal(await owner.sees(), "");
        assert.equal((await heads(owner, "a1")).events[0]?.failures, 1);
        await owner.settle({ delivered: stage.ids("a1"), releasedHolds: stage.ids("a1") });
        assert.equal(await owner.sees(), "a2");
      }));

    test("a DEAD row that parks no key comes again when an operator resets it, and is no dead letter any more", () =>
      onStage(server, async (stage) => {
        await stage.write("a1 b1");
        const owner = await stage.own();
        await owner.read();
        await owner.settle({ failed: [stage.failure("a1", DEAD_SKIPPED), stage.failure("b1", DEAD_SKIPPED)] });
        await stage.subject.resetByHand?.(stage.id("a1"));
        assert.equal(stage.show(await owner.read()), "a1");
        assert.equal(await stage.dead(), "b1");
      }));

    test("B5 a hold is void once another relay claimed its row, delivered it or made it dead", () =>
      onStage(server, async (stage, fixture) => {
        await stage.write("a1 b1 c1 d1");
        const owner = await stage.own();
        await owner.read();
        await owner.settle({ failed: ["a1", "b1", "c1", "d1"].map((name) => stage.failure(name, AT_ONCE)) });
        await stage.subject.claimByOtherRelay?.(stage.ids("a1"));
        await stage.subject.markByHand(stage.id("b1"));
        await fixture.admin.query(`update ${fixture.table} set status = 'DEAD' where event_id = $1`, [stage.id("c1")]);
        const { events, gone } = await heads(owner, "a1 b1 c1 d1");
        assert.deepEqual([stage.show(events), stage.showIds(gone)], ["d1", "a1 b1 c1"]);
        assert.equal(stage.showIds((await review(owner)).map(({ id }) => id)), "d1");
      }));

    test("an event that crashed the relay too often becomes dead without being claimed again", () =>
      onStage(server, async (stage, fixture) => {
        await stage.write("a1");
        const first = await stage.own();
        await first.read();
        await first.settle({ suspects: [{ id: stage.id("a1"), key: "a" }] });
        await first.settle({ sending: stage.ids("a1") });
        await first.die();
        const second = await stage.own();
        const failed = [stage.failure("a1", DEAD_PARKED, { attempts: 2, reason: "poison" })];
        assert.deepEqual((await second.settle({ failed })).missing, []);
        assert.equal((await fixture.row(stage.id("a1"))).status, "DEAD");
        const [letter] = await stage.subject.deadLetters();
        assert.equal(letter?.errors.length, 2);
        assert.match(letter?.errors[0] ?? "", /The relay that was sending it died: it's us/);
        assert.equal(letter?.errors[1], "poison");
      }));

    test("B6 headers arrive as text, the correlation id is one of them, and a row without proper ones has a fault", () =>
      onStage(server, async (stage, fixture) => {
        await fixture.admin.query(
          `alter table ${fixture.table} alter headers drop not null, alter payload drop not null`,
        );
        await stage.write("a1", { headers: { "correlation-id": "c'1", x: "é" } });
        await stage.write("b1 c1 d1 e1 f1 g1 h1");
        const change = (name: string, assignment: string) =>
          fixture.admin.query(`update ${fixture.table} set ${assignment} where event_id = $1`, [stage.id(name)]);
        await change("b1", `headers = '{"n": 1.10, "o": {"a": [1]}}'`);
        await change("c1", "headers = null");
        await change("h1", "headers = 'null'");
        await change("d1", "headers = '[]'");
        await change("e1", "payload = null");
        await change(
          "f1",
          "headers = jsonb_build_object('a', (select string_agg(i::text, '') from generate_series(1, 200000) i))",
        );
        await change("g1", "headers = (select jsonb_object_agg(i, '') from generate_series(1, 101) i)");
        const events = await (await stage.own()).read();
        const of = (name: string) => events.find(({ id }) => id === stage.id(name)) ?? assert.fail(name);
        assert.deepEqual([of("a1").headers, of("a1").correlationId], [{ "correlation-id": "c'1", x: "é" }, "c'1"]);
        assert.deepEqual([of("b1").headers, of("b1").correlationId], [{ n: "1.10", o: '{"a":[1]}' }, null]);
        for (const name of ["c1", "h1"]) assert.deepEqual([of(name).headers, of(name).fault], [{}, null]);
        const faults = ["d1", "e1", "f1", "g1"].map((name) => of(name).fault?.reason ?? "none");
        const expected = [/not a JSON object/, /no payload/, /headers have \d+ bytes/, /101 headers/];
        for (const [index, pattern] of expected.entries()) assert.match(faults[index] ?? "", pattern);
      }));
  });
}
