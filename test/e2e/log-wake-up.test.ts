import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { managedTableSql } from "../../src/postgres/managed/managed-table.sql.ts";
import { createRelay } from "../../src/relay/relay.ts";
import { managedOutboxSource } from "../../src/sources/postgres/log-sources.ts";
import { type PostgresServer, startPostgres } from "../servers/postgres.ts";
import { until } from "../servers/until.ts";
import { QUICK, withScene } from "./scene.ts";
import { sinkPublisher } from "./sink-publisher.ts";

let server: PostgresServer;
before(async () => {
  server = await startPostgres({ version: 18 });
});
after(() => server[Symbol.asyncDispose]());

const TABLE = { schema: "shop", table: "outbox" };
/** Far longer than the test: whoever waits for a poll fails. */
const POLL_MS = 3_600_000;

test("A1 D9 a relay that sleeps is woken by the write itself, both subscribers of a log, again and again", async () => {
  await withScene(server, [], async ({ arrived, sink, stage }) => {
    await stage.sql(managedTableSql({ table: TABLE, payload: "text", partition: "1 day", wakeUp: true }));
    const read = { database: { url: stage.url }, table: TABLE };
    await using relay = createRelay({
      sources: ["one", "two"].map((subscriber) => managedOutboxSource({ ...read, subscriber })),
      destinations: { sink: sinkPublisher(sink.port) },
      timing: { ...QUICK, pollIntervalMs: POLL_MS },
    });
    await relay.start();
    const sleeps = async () => {
      const [row] = await stage.sql<{ count: number }>(
        "select count(*)::int as count from pg_locks where locktype = 'advisory' and mode = 'ExclusiveLock' and granted",
      );
      return row!.count > 0;
    };
    for (let round = 0; round < 3; round++) {
      await until("the relay sleeps", sleeps);
      const [row] = await stage.sql<{ id: string }>("select shop.outbox_publish('t', 'k', '{}') as id");
      await arrived([row!.id]);
      await until("both subscribers have it", async () => {
        return (await sink.arrivals()).filter(({ id }) => id === row!.id).length === 2;
      });
    }
    assert.equal((await sink.arrivals()).length, 6);
  });
});
