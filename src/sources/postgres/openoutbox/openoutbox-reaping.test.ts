import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { PostgresServer } from "../../../../test/servers/postgres.ts";
import { AT_ONCE, type Owner } from "../../../testing/contracts/store-stage.ts";
import { onStage, startServer } from "./fixture.test.ts";

const reap = (owner: Owner, rows = 100) =>
  owner.store.durableClaims?.reapStale(rows) ?? assert.fail("claims are durable");

for (const version of [15, 18] as const) {
  describe(`PostgreSQL ${version}`, () => {
    let server: PostgresServer;
    before(async () => {
      server = await startServer(version);
    });
    after(async () => await server[Symbol.asyncDispose]());

    test("B5 rows that another relay left DELIVERING are reaped and their attempt counted", () =>
      onStage(server, async (stage, fixture) => {
        await stage.write("a1 b1 c1 d1");
        const owner = await stage.own();
        await stage.subject.claimByOtherRelay?.(stage.ids("a1 b1 c1 d1"));
        await stage.subject.ageClaims?.(stage.ids("a1 b1"));
        const change = (name: string, assignment: string) =>
          fixture.admin.query(`update ${fixture.table} set ${assignment} where event_id = $1`, [stage.id(name)]);
        await change("b1", "locked_by = null");
        await change("c1", "locked_by = null, locked_at = null");
        assert.deepEqual(await reap(owner), { freed: 3, dead: 0 });
        for (const [name, by] of [
          ["a1", "other-relay"],
          ["b1", "unknown"],
          ["c1", "unknown"],
        ] as const) {
          const row = await fixture.row(stage.id(name));
          assert.deepEqual([row.status, row.attempts], ["PENDING", 1]);
          assert.equal(row.last_error, `The relay that was sending it died: ${by}`);
        }
        // Younger than its lease: the other relay may well be alive.
        assert.deepEqual((await fixture.row(stage.id("d1"))).locked_by, "other-relay");
        assert.equal(await owner.sees(), "a1 b1 c1");
      }));

    test("B5 a reaped event is DEAD at the limit, with a copy that has its payload however large it is", () =>
      onStage(server, async (stage, fixture) => {
        const payload = Buffer.alloc(5_000, 7);
        await stage.write("a1", { payload });
        const owner = await stage.own({ attemptsMax: 2, payloadBytesMax: 1_000 });
        await owner.read();
        await owner.settle({ failed: [stage.failure("a1", AT_ONCE, { reason: "first" })] });
        await stage.subject.claimByOtherRelay?.(stage.ids("a1"));
        await stage.subject.ageClaims?.(stage.ids("a1"));
        assert.deepEqual(await reap(owner), { freed: 0, dead: 1 });
        const row = await fixture.row(stage.id("a1"));
        assert.deepEqual([row.status, row.attempts], ["DEAD", 2]);
        const [letter] = await stage.subject.deadLetters();
        assert.ok(letter?.payload.equals(payload));
        assert.deepEqual(letter?.errors, ["first", "The relay that was sending it died: other-relay"]);
        assert.deepEqual(await owner.store.reviewHolds(owner.takeoverOf().grant), []);
      }));

    test("B5 claims of a dead instance of ours are freed with its lanes and not as stale ones, however old they are", () =>
      onStage(server, async (stage, fixture) => {
        await stage.write("a1 b1");
        const first = await stage.own();
        await first.read();
        await first.settle({ sending: stage.ids("b1") });
        await first.die();
        await stage.subject.ageClaims?.(stage.ids("a1 b1"));
        const second = await stage.join();
        assert.deepEqual(await reap(second), { freed: 0, dead: 0 });
        await second.takeOver();
        assert.deepEqual(await reap(second), { freed: 0, dead: 0 });
        const [unsent, sent] = await Promise.all(stage.ids("a1 b1").map((id) => fixture.row(id)));
        assert.deepEqual([unsent?.status, unsent?.attempts, unsent?.last_error], ["PENDING", 0, null]);
        assert.deepEqual([sent?.status, sent?.attempts], ["PENDING", 1]);
        assert.equal(sent?.last_error, `The relay that was sending it died: it's us/${first.id}`);
      }));

    test("B5 only this pipeline's rows are reaped and taken over", () =>
      onStage(server, async (stage, fixture) => {
        await stage.write("a1", { type: "x" });
        await stage.write("b1", { type: "y" });
        const spec = { name: "x", types: [{ pattern: "x", mine: true }] };
        const owner = await stage.own(spec);
        await owner.read();
        await stage.subject.claimByOtherRelay?.(stage.ids("b1"));
        await stage.subject.ageClaims?.(stage.ids("b1"));
        assert.deepEqual(await reap(owner), { freed: 0, dead: 0 });
        await fixture.admin.query(`update ${fixture.table} set locked_by = $1 where event_id = $2`, [
          `it's us/${owner.id}`,
          stage.id("b1"),
        ]);
        await owner.die();
        await stage.own(spec);
        assert.equal((await fixture.row(stage.id("a1"))).status, "PENDING");
        assert.equal((await fixture.row(stage.id("b1"))).status, "DELIVERING");
      }));

    test("a refresh leaves young claims and those of others alone", () =>
      onStage(server, async (stage, fixture) => {
        await stage.write("a1 b1 c1");
        const owner = await stage.own();
        await owner.read();
        await stage.subject.ageClaims?.(stage.ids("a1 b1"));
        await fixture.admin.query(`update ${fixture.table} set locked_by = 'other-relay' where event_id = $1`, [
          stage.id("b1"),
        ]);
        const before = await Promise.all(stage.ids("a1 b1 c1").map((id) => fixture.row(id)));
        await owner.store.durableClaims?.refresh(owner.id, stage.ids("a1 b1 c1"));
        const after = await Promise.all(stage.ids("a1 b1 c1").map((id) => fixture.row(id)));
        assert.ok(after[0]!.locked_at! > before[0]!.locked_at!);
        assert.deepEqual(after.slice(1), before.slice(1));
      }));

    test("pruning walks through a large table in steps and skips locked rows", () =>
      onStage(server, async (stage, fixture) => {
        const { admin, table } = fixture;
        await admin.query(
          `insert into ${table} (event_id, event_type, payload, status, delivered_at)
           select gen_random_uuid(), 't', convert_to(repeat('x', 500), 'UTF8'), 'DELIVERED', now() - interval '1 day'
           from generate_series(1, 18000)`,
        );
        await stage.write("a1");
        const owner = await stage.own();
        await admin.query("begin");
        await admin.query(`select from ${table} where status = 'DELIVERED' limit 10 for update`);
        let [pruned, step] = [0, 0];
        do pruned += step = await owner.store.prune(3_600_000, 5_000);
        while (step > 0);
        await admin.query("rollback");
        assert.equal(pruned, 17_990);
        assert.equal(await owner.store.prune(3_600_000, 5_000), 10);
        assert.equal(await owner.sees(), "a1");
      }));
  });
}
