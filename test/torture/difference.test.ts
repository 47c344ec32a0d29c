import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { Database } from "../../src/postgres/pool.ts";
import { horizonKind } from "../../src/sources/postgres/tail/horizon-kind.ts";
import { type PostgresServer, startPostgres } from "../servers/postgres.ts";
import { startReplicated } from "../servers/postgres-standby.ts";
import { until } from "../servers/until.ts";
import { MUTANTS } from "./mutants.ts";
import type { ReadableLog } from "./readers.ts";
import { Scene, tortureLog } from "./scene.ts";
import { verdict } from "./verdict.ts";

let server: PostgresServer;

before(async () => {
  server = await startPostgres({ version: 18 });
});
after(async () => {
  await server[Symbol.asyncDispose]();
});

async function deliver(scene: Scene, events: number): Promise<void> {
  const least = scene.delivered + events;
  await until(`${events} more events are delivered`, async () => {
    await scene.requireReading();
    return scene.delivered >= least;
  });
}

test("A3 D9 however late transactions commit, and though server and readers are killed, every row is read once and in order", async () => {
  await using scene = new Scene({ url: server.url, seed: 1 });
  await scene.start();
  await deliver(scene, 5_000);
  await server.stop("immediate");
  await server.restart();
  await deliver(scene, 5_000);
  const { wrong, written, restarts } = await scene.finish();
  assert.deepEqual(wrong.slice(0, 10), []);
  assert.ok(written >= 10_000 && restarts > 6, `${written} rows, ${restarts} restarts`);
});

test("A3 D9 what a promoted standby holds is read once and in order", async () => {
  await using replicated = await startReplicated({ version: 15 });
  await using scene = new Scene({ url: replicated.databaseUrl(), seed: 100, isPartitioned: true });
  await scene.start();
  await deliver(scene, 1_500);
  await replicated.failover();
  await deliver(scene, 1_500);
  const { wrong, written } = await scene.finish();
  assert.deepEqual(wrong.slice(0, 10), []);
  assert.ok(written >= 3_000, `${written} rows`);
});

test("A3 D9 a table without the column is read once and in order too, as fast as its writers let it", async () => {
  await server.createDatabase("horizon");
  const logOf = (database: Database, lanes: number) =>
    horizonKind({ ...tortureLog(database, lanes), reportAfterMs: 60_000 }) as ReadableLog<unknown>;
  await using scene = new Scene({ url: server.databaseUrl("horizon"), seed: 50, writers: 2, logOf });
  await scene.start();
  await deliver(scene, 400);
  const { wrong } = await scene.finish();
  assert.deepEqual(wrong.slice(0, 10), []);
});

describe("the torture finds out a reader that", { concurrency: true }, () => {
  Object.entries(MUTANTS).forEach(([name, { finds, logOf }], index) => {
    test(name, async () => {
      await server.createDatabase(`mutant${index}`);
      await using scene = new Scene({ url: server.databaseUrl(`mutant${index}`), seed: 1_000 * index, logOf });
      await scene.start();
      await deliver(scene, 1_500);
      if (!finds.test("was lost")) await until("it is found out", () => scene.hasFound(finds), 10_000).catch(() => {});
      const { wrong } = await scene.finish();
      assert.ok(
        wrong.some((what) => finds.test(what)),
        `${wrong.length} found: ${wrong.slice(0, 5).join("; ")}`,
      );
    });
  });
});

test("the verdict names what is lost, doubled, unknown or out of order", () => {
  const rows = [1, 2, 3].map((position) => ({ position, key: "k", n: position }));
  const written = new Map(rows.map((row) => [row.position, row]));
  assert.deepEqual(verdict(rows, written), []);
  assert.deepEqual(verdict([rows[0]!, rows[2]!], written), ["row 2 (k 2) was lost"]);
  assert.deepEqual(verdict([rows[1]!, rows[0]!, rows[2]!], written), ["k: 1 came after 2"]);
  assert.equal(verdict([...rows, rows[2]!], written)[0], "row 3 (k 3) was delivered twice");
  assert.equal(verdict([...rows, { position: 4, key: "k", n: 4 }], written)[0], "row 4 (k 4) is not in the table");
});
