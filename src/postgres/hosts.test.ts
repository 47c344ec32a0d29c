import assert from "node:assert/strict";
import { test } from "node:test";
import { freePort } from "../../test/servers/free-port.ts";
import { startReplicated } from "../../test/servers/postgres-standby.ts";
import { until } from "../../test/servers/until.ts";
import { isRelayError } from "../core/errors.ts";
import { ReplicationLink } from "../sources/postgres/wal/replication-link.ts";
import { splitHosts } from "./hosts.ts";
import { openDatabase } from "./pool.ts";
import { glance, statement } from "./transaction.ts";

test("H1 an address with several hosts is taken apart; one with one host is left alone", () => {
  assert.equal(splitHosts("postgres://user:p%40ss@one:5432/db?sslmode=require"), null);
  assert.deepEqual(
    splitHosts("postgres://user:p%40ss@one:5433,two,[::1]:7/db?sslmode=require&target_session_attrs=primary"),
    {
      url: "postgres://user:p%40ss@one:5433/db?sslmode=require",
      hosts: [{ host: "one", port: 5433 }, { host: "two" }, { host: "::1", port: 7 }],
      target: "primary",
    },
  );
  assert.deepEqual(splitHosts("postgresql://one,two/db?target_session_attrs=any&x=1"), {
    url: "postgresql://one/db?x=1",
    hosts: [{ host: "one" }, { host: "two" }],
    target: "any",
  });
  assert.equal(splitHosts("postgres://one,two/db")?.target, "read-write");
  for (const wrong of ["postgres://one,two/db?target_session_attrs=standby", "postgres://one:5x,two/db"]) {
    assert.throws(
      () => splitHosts(wrong),
      (error) => isRelayError(error, "CONFIG_INVALID"),
    );
  }
});

test("H1 of several hosts the one that takes writes is used by every connection, also after a failover", async () => {
  await using servers = await startReplicated({ version: 18 });
  const { primary, standby } = servers;
  const list = `127.0.0.1:${await freePort()},127.0.0.1:${standby.port},127.0.0.1:${primary.port}`;
  const database = openDatabase({ url: `postgres://postgres@${list}/postgres` });
  const anywhere = openDatabase({ url: `postgres://postgres@${list}/postgres?target_session_attrs=any` });
  const settings = { context: database.errorContext("writing"), statementTimeoutMs: 5_000 };
  const write = (n: number) => statement(database.pool, settings, `insert into notes values (${n})`);
  try {
    await statement(database.control, settings, "create table notes (n int)");
    await write(1);
    const link = await ReplicationLink.connect(database);
    assert.equal((await link.rows("show transaction_read_only"))[0]?.[0], "off");
    await link.end();
    const where = "select inet_server_port()";
    const [port] = await glance(anywhere.pool, anywhere.errorContext("looking"), 5_000, where);
    assert.equal(Number(port?.[0]), standby.port, "any takes the first that answers");
    await servers.caughtUp();
    await servers.kill();
    await until("the health can say that only a standby is left", () =>
      write(2).then(
        () => false,
        (error: unknown) =>
          isRelayError(error, "DATABASE_UNREACHABLE") && /accepts writes: .* is a standby/.test(error.message),
      ),
    );
    await servers.promote();
    await until("the promoted one is found", () =>
      write(2).then(
        () => true,
        (error: unknown) => !isRelayError(error),
      ),
    );
    const { rows } = await standby.query("select n from notes order by n");
    assert.deepEqual(rows, [{ n: 1 }, { n: 2 }]);
  } finally {
    await Promise.all([database.close(), anywhere.close()]);
  }
});
