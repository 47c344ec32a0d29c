import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { describe, test } from "node:test";
import pg from "pg";
import { startPostgres } from "./postgres.ts";
import { markedProcesses } from "./scratch.ts";
import { until } from "./until.ts";

for (const version of [15, 18] as const) {
  describe(`PostgreSQL ${version}`, () => {
    test("starts as asked, listens on the loopback only and is reached by its connection strings", async () => {
      await using server = await startPostgres({ version, flags: ["-c", "max_connections=37"] });
      await server.createDatabase("shop");
      const { rows } = await server.query(
        `SELECT current_setting('server_version_num')::int / 10000 AS major, current_setting('max_connections') AS connections,
                current_setting('wal_level') AS wal, current_setting('listen_addresses') AS listen, $1::text AS param`,
        ["hello"],
        "shop",
      );
      assert.deepEqual(rows, [
        { major: version, connections: "37", wal: "logical", listen: "127.0.0.1", param: "hello" },
      ]);
      await server.query("CREATE ROLE clerk LOGIN");
      const client = new pg.Client({ connectionString: server.databaseUrl("shop", "clerk", "p@ss") });
      await client.connect();
      assert.deepEqual((await client.query("SELECT current_user AS who")).rows, [{ who: "clerk" }]);
      await client.end();
    });

    test("keeps committed rows over kill -9, an immediate and a fast stop", async () => {
      await using server = await startPostgres({ version });
      await server.query("CREATE TABLE t (n int)");
      for (const end of [() => server.kill(), () => server.stop("immediate"), () => server.stop("fast")]) {
        await server.query("INSERT INTO t VALUES (1)");
        const busy = server.query("SELECT pg_sleep(60)");
        await Promise.all([assert.rejects(busy), until("the query runs", () => isAsleep(server)).then(end)]);
        await assert.rejects(server.query("SELECT 1"), { code: "ECONNREFUSED" });
        await server.restart();
      }
      assert.deepEqual((await server.query("SELECT count(*)::int AS n FROM t")).rows, [{ n: 3 }]);
    });

    test("answers nothing while it is paused and everything afterwards", async () => {
      await using server = await startPostgres({ version });
      await server.pause();
      let answered = false;
      const query = server.query("SELECT 1 AS one").finally(() => {
        answered = true;
      });
      // A whole round trip to another server shows that an answer would have had the time to arrive.
      await using other = await startPostgres({ version });
      await other.query("SELECT 1");
      assert.equal(answered, false);
      server.resume();
      assert.deepEqual((await query).rows, [{ one: 1 }]);
    });

    test("says why when it cannot start", async () => {
      await assert.rejects(startPostgres({ version, flags: ["-c", "wal_level=nonsense"] }), /nonsense/);
    });
  });
}

test("leaves no process, folder or shared memory behind when the test process is killed while the server is paused", async () => {
  const program = `
    import { startPostgres } from ${JSON.stringify(import.meta.resolve("./postgres.ts"))};
    const server = await startPostgres({ version: 18 });
    await server.pause();
    process.stdout.write(server.folder);`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", program], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [output] = await once(child.stdout, "data");
  const folder = String(output);
  const segment =
    readFileSync(join(folder, "data/postmaster.pid"), "utf8").split("\n")[6]?.trim().split(/\s+/)[1] ?? "";
  assert.notEqual(markedProcesses(basename(folder)).length, 0);
  assert.ok(sharedMemory().includes(` ${segment} `));

  child.kill("SIGKILL");
  await until("the folder is gone", () => !existsSync(folder));
  assert.deepEqual(markedProcesses(basename(folder)), []);
  assert.ok(!sharedMemory().includes(` ${segment} `));
});

async function isAsleep(server: Awaited<ReturnType<typeof startPostgres>>): Promise<boolean> {
  const { rowCount } = await server.query("SELECT FROM pg_stat_activity WHERE wait_event = 'PgSleep'");
  return rowCount === 1;
}

function sharedMemory(): string {
  return execFileSync("ipcs", ["-m"], { encoding: "utf8" });
}
