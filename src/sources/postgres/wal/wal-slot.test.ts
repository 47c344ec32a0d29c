import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { type PostgresServer, startPostgres } from "../../../../test/servers/postgres.ts";
import { until } from "../../../../test/servers/until.ts";
import { codeIs, ids, numbers, openStage, PLAIN, readOn, request } from "../../../../test/servers/wal-stage.ts";
import { openDatabase } from "../../../postgres/pool.ts";
import { replicationError } from "./replication.ts";
import { ReplicationLink } from "./replication-link.ts";
import { slotHealth } from "./slot.ts";

for (const version of [15, 18] as const) {
  describe(`PostgreSQL ${version}`, () => {
    let server: PostgresServer;
    before(async () => {
      const flags = ["-c", "max_replication_slots=40", "-c", "max_wal_senders=40"];
      server = await startPostgres({ version, flags, ...(version === 15 ? { language: "de" } : {}) });
    });
    after(async () => await server[Symbol.asyncDispose]());

    const setting = async (name: string, value: string) => {
      await server.query(`alter system set ${name} = '${value}'`);
      await server.query("select pg_reload_conf()");
    };

    test("D3 only what is settled is confirmed, also while the log is idle", async () => {
      await using stage = await openStage(server);
      const { log, place } = await stage.begin();
      const confirmed = async () => (await slotHealth(stage.database, stage.slot))?.confirmedLsn ?? 0n;
      const first = await confirmed();
      await stage.write(1, 10);
      const { rows, head } = await readOn(log, place);
      await stage.admin.query("create temp table t as select 1");
      // More log than an idle reading leaves behind, and nothing of it for us.
      await stage.admin.query("select pg_logical_emit_message(true, 'noise', repeat('x', 3000000))");
      await until("there is something to move on to", () => log.probe(request(head)));
      const idle = await readOn(log, head);
      assert.equal(idle.rows.length, 0);
      assert.ok(idle.head.segment.lsn - head.segment.lsn > 3_000_000n);
      assert.equal(await confirmed(), first);
      log.settled([rows[4]!]);
      await until("the rows are confirmed", async () => (await confirmed()) === rows[4]!.segment.lsn);
      log.settled([idle.head]);
      await until("the idle log is confirmed", async () => (await confirmed()) === idle.head.segment.lsn);
      assert.equal(await log.probe(request(idle.head)), false);
      await log.rest();
      await assert.rejects(log.open(request(place)), codeIs("LOG_LOST", "after the checkpoint"));
    });

    test("D9 the reading resumes after an immediate restart of the server, with nothing lost and nothing twice", async () => {
      await using stage = await openStage(server);
      const { log, place } = await stage.begin();
      await stage.write(1, 5);
      const before = await readOn(log, place);
      await stage.write(6, 7);
      await server.stop("immediate");
      await assert.rejects(async () => await readOn(log, before.head), codeIs("DATABASE_UNREACHABLE"));
      await server.restart();
      const after = await readOn(log, before.head);
      assert.deepEqual(ids([...before.rows, ...after.rows]), numbers(1, 7));
    });

    test("D9 the new owner of a lane takes the slot from the former one; other readers are left alone", async () => {
      await using stage = await openStage(server);
      const { log, place } = await stage.begin({ publication: stage.slot });
      await stage.write(1, 1);
      await readOn(log, place);
      const other = stage.kind({ publication: stage.slot });
      await other.prepare();
      assert.deepEqual(ids((await readOn(other, place)).rows), ["1"]);
      await until("the former owner knows", () => log.probe(request(place)));
      await other.close();
      const stranger = openDatabase({ url: `${server.url}?application_name=stranger` });
      const link = await ReplicationLink.connect(stranger, "");
      const publication = `proto_version '1', publication_names '${stage.slot}'`;
      await link.start(`START_REPLICATION SLOT ${stage.slot} LOGICAL 0/0 (${publication})`, {
        onAlive: () => {},
        onChange: () => {},
        onFailure: () => {},
      });
      await assert.rejects(log.open(request(place)), codeIs("DATABASE_BUSY", "another connection"));
      await link.end();
      await stranger.close();
      assert.deepEqual(ids((await readOn(log, place)).rows), ["1"]);
    });

    test("D9 F2 a dropped slot is lost, never silently recreated; a reset begins with a new one", async () => {
      await using stage = await openStage(server);
      const { log, place } = await stage.begin();
      await stage.write(1, 1);
      const { head } = await readOn(log, place);
      await log.rest();
      await server.query("select pg_drop_replication_slot($1)", [stage.slot]);
      await assert.rejects(log.open(request(head)), codeIs("SLOT_LOST", "log reset"));
      await assert.rejects(log.decode(log.encode(head, [])), codeIs("SLOT_LOST", "dropped"));
      await log.prepare();
      await assert.rejects(log.open(request(head)), codeIs("SLOT_LOST"));
      const again = await stage.begin({ start: "now" });
      await stage.write(2, 2);
      assert.deepEqual(ids((await readOn(again.log, again.place)).rows), ["2"]);
    });

    test("D9 F2 a slot that fell behind max_slot_wal_keep_size is lost with its way out", async () => {
      await using stage = await openStage(server);
      const { log, place } = await stage.begin();
      await stage.write(1, 1);
      await log.rest();
      await setting("max_slot_wal_keep_size", "1MB");
      await until("the slot is lost", async () => {
        await server.query(
          "select pg_logical_emit_message(false, 'noise', repeat('x', 1000000)) from generate_series(1, 20)",
        );
        await server.query("select pg_switch_wal()");
        await server.query("checkpoint");
        return (await slotHealth(stage.database, stage.slot))?.walStatus === "lost";
      });
      await setting("max_slot_wal_keep_size", "-1");
      const said = Object.assign(new Error("Nein"), { code: "55000", severity: "FEHLER" });
      const lost = await replicationError(said, stage.database, "reading", stage.slot);
      assert.ok(codeIs("SLOT_LOST", "max_slot_wal_keep_size")(lost));
      await assert.rejects(log.open(request(place)), codeIs("SLOT_LOST", "max_slot_wal_keep_size"));
      const again = await stage.begin({ start: "now" });
      await stage.write(2, 2);
      assert.deepEqual(ids((await readOn(again.log, again.place)).rows), ["2"]);
    });

    test("D9 a table that was dropped, or lost its publication, is reported; earlier rows still arrive", async () => {
      await using stage = await openStage(server);
      const { log, place } = await stage.begin();
      await stage.write(1, 2);
      await stage.admin.query(`drop table ${stage.quoted}`);
      const { head, rows } = await readOn(log, place);
      assert.deepEqual(ids(rows), ["1", "2"]);
      await assert.rejects(log.probe(request(head)), codeIs("TABLE_MISSING", "does not exist"));
      await stage.admin.query(`create table ${stage.quoted} (${PLAIN})`);
      await assert.rejects(log.probe(request(head)), codeIs("TABLE_MISSING", "add table"));
      await assert.rejects(log.prepare(), codeIs("TABLE_MISSING", "add table"));
    });

    test("D9 rows from before the slot are not left out in silence", async () => {
      await using stage = await openStage(server);
      await stage.write(1, 1);
      await assert.rejects(stage.begin(), codeIs("CONFIG_INVALID", "`now`"));
      await assert.rejects(stage.begin({ start: new Date() }), codeIs("CONFIG_INVALID", "`now`"));
      assert.equal(await slotHealth(stage.database, stage.slot), null);
      const { log, place } = await stage.begin({ start: "now" });
      await stage.write(2, 2);
      assert.deepEqual(ids((await readOn(log, place)).rows), ["2"]);
      const health = await slotHealth(stage.database, stage.slot);
      assert.equal(health?.isFailover, version >= 17 ? true : null);
      assert.ok(health?.active === true && (health.retainedBytes ?? 0) > 0);
    });

    test("D9 a transaction that stays open keeps a slot from being made; nothing is left behind", async () => {
      await using stage = await openStage(server);
      await stage.admin.query("begin; create temp table t (a int)");
      const database = openDatabase({ url: server.url, timeouts: { readMs: 200 } });
      await assert.rejects(stage.begin({ database }), codeIs("DATABASE_BUSY"));
      assert.equal(await slotHealth(stage.database, stage.slot), null);
      await stage.admin.query("commit");
      await stage.begin({ database });
      await database.close();
    });

    test("H1 D9 F2 what the server says of slot and publication is understood in any language", async () => {
      await using stage = await openStage(server);
      const { log, place } = await stage.begin({ publication: stage.slot });
      const { database, slot } = stage;
      const translated = async (code: string, name: string) =>
        (
          await replicationError(
            Object.assign(new Error("Nein"), { code, severity: "FEHLER" }),
            database,
            "reading",
            name,
          )
        ).code;
      assert.deepEqual(
        await Promise.all([translated("42704", slot), translated("42704", "gone"), translated("55000", slot)]),
        ["LOG_LOST", "SLOT_LOST", "DATABASE_REFUSED"],
      );
      await stage.admin.query(`drop publication ${slot}`);
      await stage.write(1, 1);
      await stage.admin.query(`create publication ${slot} for table ${stage.quoted}`);
      // Version 18 skips what was written without the publication.
      if (version === 15) await assert.rejects(readOn(log, place), codeIs("LOG_LOST", "dropped or recreated"));
    });

    test("D9 a place of another server, ahead of the log, or of an unknown history is LOG_LOST", async () => {
      await using stage = await openStage(server);
      const { log, place } = await stage.begin();
      const written = JSON.parse(log.encode(place, [])) as object;
      for (const change of [{ system: "1" }, { lsn: "FF/0" }, { timeline: 77 }]) {
        await assert.rejects(log.decode(JSON.stringify({ ...written, ...change })), codeIs("LOG_LOST"));
      }
    });

    test("D9 a role without the rights gets an error with the statements that grant them", async () => {
      await using stage = await openStage(server);
      const role = `r_${stage.slot}`;
      await stage.admin.query(`create role ${role} login`);
      const database = openDatabase({ url: server.databaseUrl("postgres", role) });
      const log = stage.kind({ database });
      await assert.rejects(log.prepare(), codeIs("GRANT_MISSING", `alter role "${role}" replication;`));
      await stage.admin.query(`alter role ${role} replication`);
      await assert.rejects(log.prepare(), codeIs("GRANT_MISSING", "create publication"));
      const statement = await log.prepare().catch((error: Error) => /runs: (.*;) \[/s.exec(error.message)?.[1]);
      await stage.admin.query(String(statement));
      await log.prepare();
      await assert.rejects(log.start(), codeIs("GRANT_MISSING", "(SQLSTATE 42501)"));
      assert.equal(await slotHealth(stage.database, stage.slot), null);
      const reader = stage.kind({ database, start: "now" });
      await reader.prepare();
      const { place } = await reader.decode(await reader.start());
      await stage.write(1, 1);
      assert.deepEqual(ids((await readOn(reader, place)).rows), ["1"]);
      await reader.close();
      await database.close();
      await stage.admin.query(`drop role ${role}`);
    });
  });
}

test("D9 a wal_level that is too low is refused with what to do", async () => {
  await using server = await startPostgres({ version: 18, flags: ["-c", "wal_level=replica"] });
  await using stage = await openStage(server);
  await assert.rejects(stage.begin(), codeIs("DATABASE_REFUSED", "alter system set wal_level"));
});
