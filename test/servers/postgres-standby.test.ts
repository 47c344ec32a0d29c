import assert from "node:assert/strict";
import { describe, test } from "node:test";
import pg from "pg";
import { startReplicated } from "./postgres-standby.ts";

for (const version of [15, 18] as const) {
  describe(`PostgreSQL ${version} with a standby`, () => {
    test("a failover loses the commits made while replication was paused, and only those", async () => {
      await using servers = await startReplicated({ version });
      await servers.primary.query("CREATE TABLE t (n int)");
      await servers.primary.query("INSERT INTO t VALUES (1)");
      await servers.caughtUp();
      servers.pauseReplication();
      await servers.primary.query("INSERT INTO t VALUES (2)");
      await servers.failover();
      assert.deepEqual((await servers.standby.query("SELECT n FROM t")).rows, [{ n: 1 }]);
    });

    test("a failover keeps everything once replication was resumed", async () => {
      await using servers = await startReplicated({ version });
      await servers.primary.query("CREATE TABLE t (n int)");
      servers.pauseReplication();
      await servers.primary.query("INSERT INTO t VALUES (1)");
      servers.resumeReplication();
      await servers.caughtUp();
      await servers.failover();
      await servers.standby.query("INSERT INTO t VALUES (2)");
      assert.deepEqual((await servers.standby.query("SELECT n FROM t ORDER BY n")).rows, [{ n: 1 }, { n: 2 }]);
    });

    test("the proxy leads to the primary, drops its connections at the failover and then leads to the standby", async () => {
      await using servers = await startReplicated({ version });
      const first = await connect(servers.databaseUrl());
      assert.equal(await portOf(first), servers.primary.port);
      const lost = new Promise((resolve) => first.on("error", resolve));
      await servers.failover();
      await lost;
      const second = await connect(servers.databaseUrl());
      assert.equal(await portOf(second), servers.standby.port);
      await second.end();
    });
  });
}

async function connect(connectionString: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString });
  await client.connect();
  return client;
}

async function portOf(client: pg.Client): Promise<number> {
  const { rows } = await client.query("SELECT inet_server_port() AS port");
  return rows[0].port;
}
