import assert from "node:assert/strict";
import { test } from "node:test";
import { startPostgres } from "../../../../test/servers/postgres.ts";
import { startTcpProxy } from "../../../../test/servers/tcp-proxy.ts";
import { until } from "../../../../test/servers/until.ts";
import { aheadOf, ids, openStage, readOn } from "../../../../test/servers/wal-stage.ts";
import { openDatabase } from "../../../postgres/pool.ts";

const FLAGS = ["sync_replication_slots=on", "hot_standby_feedback=on", "wal_receiver_status_interval=1s"];

async function startPair() {
  await using started = new AsyncDisposableStack();
  const flags = (more: readonly string[]) => [...FLAGS, ...more].flatMap((setting) => ["-c", setting]);
  const primary = started.use(await startPostgres({ version: 18, flags: flags([]) }));
  await primary.query("select pg_create_physical_replication_slot('standby')");
  const stream = started.use(await startTcpProxy(primary.port));
  const conninfo = `primary_conninfo=host=127.0.0.1 port=${stream.port} user=postgres dbname=postgres`;
  const standbyFlags = flags(["primary_slot_name=standby", conninfo]);
  const standby = started.use(await startPostgres({ version: 18, flags: standbyFlags, standbyOfPort: stream.port }));
  const owned = started.move();
  return { primary, standby, stream, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

test("D9 F2 a promoted standby is read on from where it left the primary: what it holds comes, and nothing twice", async () => {
  await using pair = await startPair();
  const { primary, standby, stream } = pair;
  await using stage = await openStage(primary);
  const { log, place } = await stage.begin();
  let head = place;
  await until("the standby has the slot", async () => {
    // It is kept there once the primary's has moved on from where the standby's began.
    await primary.query("select pg_log_standby_snapshot()");
    ({ head } = await readOn(log, head));
    log.settled([head]);
    const { rows } = await standby.query(
      "select from pg_replication_slots where slot_name = $1 and synced and not temporary",
      [stage.slot],
    );
    return rows.length === 1;
  });
  await stage.write(1, 5);
  const first = await readOn(log, head);
  const inside = log.encode(first.rows[2]!, [first.rows[4]!]);
  await until("the standby has the rows", async () => {
    const { rows } = await standby.query(`select from ${stage.quoted}`).catch(() => ({ rows: [] }));
    return rows.length === 5;
  });
  stream.refuse(true);
  stream.cut();
  await stage.write(6, 7);
  const second = await readOn(log, first.head);
  assert.deepEqual(ids(second.rows), ["6", "7"]);
  const beyond = log.encode(second.head, [second.rows[0]!]);
  await log.close();
  await primary.kill();
  await standby.query("select pg_promote(true, 60)");
  const database = openDatabase({ url: standby.url });
  const next = stage.kind({ database });
  await until("the standby is a primary", () =>
    next.prepare().then(
      () => true,
      () => false,
    ),
  );
  const insert = (id: number) => standby.query(`insert into ${stage.quoted} (id, event_type) values (${id}, 'T')`);
  await insert(8);
  await insert(9);
  const fromInside = await next.decode(inside);
  const again = await readOn(next, fromInside.place);
  assert.deepEqual(ids(again.rows), ["4", "5", "8", "9"]);
  assert.deepEqual(ids(aheadOf(next, fromInside, again.rows)), ["5"]);
  const fromBeyond = await next.decode(beyond);
  const rest = await readOn(next, fromBeyond.place);
  assert.deepEqual(ids(rest.rows), ["8", "9"]);
  assert.deepEqual(aheadOf(next, fromBeyond, rest.rows), []);
  await next.close();
  await database.close();
});
