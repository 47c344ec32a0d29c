import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { PostgresServer } from "../../../../test/servers/postgres.ts";
import type { ClaimedEvent } from "../../../ports/queue-store.ts";
import { AT_ONCE, assertFenced, BYTES_MAX, type Owner, SPEC } from "../../../testing/contracts/store-stage.ts";
import { type Fixture, onStage, startServer } from "./fixture.test.ts";

/** Events in one statement of one transaction: all of their times are equal. */
async function writeTied({ admin, table }: Fixture, count: number, keys: number): Promise<void> {
  await admin.query(
    `insert into ${table} (event_id, event_type, partition_key, payload)
     select gen_random_uuid(), 't', 'k' || i % ${keys}, convert_to(i::text, 'UTF8') from generate_series(1, ${count}) i`,
  );
}

function assertInOrder(events: readonly ClaimedEvent[], count: number): void {
  const last = new Map<string | null, number>();
  for (const { key, payload } of events) {
    const number = Number(payload.toString());
    assert.ok(number > (last.get(key) ?? 0), `${number} of ${key} comes after ${last.get(key)}`);
    last.set(key, number);
  }
  assert.equal(events.length, count);
}

const claimPage = (owner: Owner, rows: number) => owner.inRun((run) => run.next(rows, BYTES_MAX));

async function claimedBy(fixture: Fixture, owner: Owner): Promise<number> {
  return (await fixture.ids(`right(locked_by, 36) = '${owner.id}'`)).length;
}

for (const version of [15, 18] as const) {
  describe(`PostgreSQL ${version}`, () => {
    let server: PostgresServer;
    before(async () => {
      server = await startServer(version);
    });
    after(async () => await server[Symbol.asyncDispose]());

    test("B4 a late settle cannot overwrite the successor's", () =>
      onStage(server, async (stage, fixture) => {
        await stage.write("a1 b1 c1 d1");
        const slow = await stage.own();
        await slow.read();
        await slow.die();
        const successor = await stage.own();
        await successor.read();
        const failed = [stage.failure("b1", AT_ONCE, { attempts: 2, reason: "the successor's" })];
        await successor.settle({ delivered: stage.ids("a1"), failed });
        const rows = () => Promise.all(stage.ids("a1 b1 c1 d1").map((id) => fixture.row(id)));
        const before = await rows();
        const late = {
          delivered: stage.ids("b1 c1"),
          failed: [stage.failure("a1", AT_ONCE, { reason: "late" })],
          handedBack: stage.ids("d1"),
        };
        await assertFenced(slow.settle(late));
        assert.deepEqual(await rows(), before);
      }));

    test("B4 a settle leaves alone what was reaped and claimed by another relay meanwhile", () =>
      onStage(server, async (stage, fixture) => {
        await stage.write("a1 b1 c1 d1");
        const owner = await stage.own();
        await owner.read();
        await stage.subject.claimByOtherRelay?.(stage.ids("a1 b1 c1"));
        const { missing } = await owner.settle({
          delivered: stage.ids("a1 d1"),
          failed: [stage.failure("b1", AT_ONCE)],
          handedBack: stage.ids("c1"),
        });
        assert.equal(stage.showIds(missing), "a1 b1");
        for (const id of stage.ids("a1 b1 c1")) assert.equal((await fixture.row(id)).locked_by, "other-relay");
        assert.deepEqual(await owner.store.reviewHolds(owner.takeoverOf().grant), []);
      }));

    test("B4 of a claim and a take-over at the same time none leaves a row to the former owner", () =>
      onStage(server, async (stage, fixture) => {
        let owner = await stage.own({ attemptsMax: 1_000 });
        for (let round = 0; round < 20; round++) {
          await stage.write(`a${round} b${round}`);
          const successor = await stage.join({ attemptsMax: 1_000 });
          const former = owner;
          await stage.subject.expireInstance(owner.id);
          await stage.subject.source.membership.reap();
          const takesOver = async () => {
            while (successor.grants.length === 0) await successor.takeOver();
          };
          const [claimed] = await Promise.all([claimPage(former, 100), takesOver()]);
          assert.equal(await claimedBy(fixture, former), 0, `round ${round}, ${claimed.length} claimed`);
          owner = successor;
        }
        assert.equal((await owner.read({ rows: 100 })).length, 40);
      }));

    test("B4 instances under different names take over from each other", () =>
      onStage(server, async (stage, fixture) => {
        await stage.write("a1");
        const first = await stage.own();
        await first.read();
        await first.settle({ sending: stage.ids("a1") });
        await first.die();
        const other = fixture.source({ relayId: "another name" }).pipeline(SPEC);
        const id = "b5f0a2f4-7f52-4e5c-9a83-16ae3a0a1a11";
        await stage.subject.source.membership.join({ id, name: "x", leaseMs: 60_000, pipelines: ["contract"] });
        const [takeover] = await other.takeOver(id, [0]);
        const run = await other.begin({ grants: [takeover!.grant], exceptKeys: [], exceptTypes: [] });
        assert.equal((await run.next(10, BYTES_MAX))[0]?.failures, 1);
        assert.match((await fixture.row(stage.id("a1"))).locked_by ?? "", new RegExp(`^another name/\\d{16}/${id}$`));
      }));

    test("A3 events of one transaction keep their order when they are handed back and taken over, in whatever order", () =>
      onStage(server, async (stage, fixture) => {
        const count = 2_000;
        await writeTied(fixture, count, 10);
        const owner = await stage.own({ attemptsMax: 100 });
        const pages = [await claimPage(owner, 300), await claimPage(owner, 300), await claimPage(owner, 300)];
        await owner.handBack([...pages[1]!].reverse());
        await owner.handBack([...pages[0]!].reverse());
        // Room in the middle of the table, so that new row versions do not simply follow each other.
        await fixture.admin.query(`vacuum ${fixture.table}`);
        const again = await claimPage(owner, 400);
        await owner.store.durableClaims?.refresh(
          owner.id,
          again.map(({ id }) => id),
        );
        await owner.handBack(again.slice(200));
        await owner.die();
        await fixture.admin.query(`vacuum ${fixture.table}`);
        const successor = await stage.own({ attemptsMax: 100 });
        assertInOrder(await successor.read({ rows: 150 }), count);
      }));

    test("A3 the order holds also where no index gives it", () =>
      onStage(server, async (stage, fixture) => {
        await writeTied(fixture, 500, 7);
        const schema = fixture.name.schema.replaceAll("'", "''");
        await fixture.admin.query(`do $$ declare i text; begin
          for i in select indexrelid::regclass from pg_index join pg_class c on c.oid = indrelid
            join pg_namespace n on n.oid = c.relnamespace where n.nspname = '${schema}' and not indisprimary
          loop execute 'drop index ' || i; end loop; end $$`);
        assertInOrder(await (await stage.own()).read({ rows: 60 }), 500);
      }));
  });
}
