import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type PostgresServer, startPostgres } from "../servers/postgres.ts";
import { startReplicated } from "../servers/postgres-standby.ts";
import { until } from "../servers/until.ts";
import { MUTANTS } from "./mutants.ts";
import { Scene } from "./scene.ts";
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
  await deliver(scene, 3_000);
  await server.stop("immediate");
  await server.restart();
  await deliver(scene, 3_000);
  const { wrong, written, restarts } = await scene.finish();
  assert.deepEqual(wrong.slice(0, 10), []);
  assert.ok(written >= 6_000 && restarts > 6, `${written} rows, ${restarts} restarts`);
});

test("A3 D9 what a promoted standby holds is read once and in order", async () => {
  await using replicated = await startReplicated({ version: 15 });
  await using scene = new Scene({ url: replicated.databaseUrl(), seed: 2 });
  await scene.start();
  await deliver(scene, 1_500);
  await replicated.failover();
  await deliver(scene, 1_500);
  const { wrong, written } = await scene.finish();
  assert.deepEqual(wrong.slice(0, 10), []);
  assert.ok(written >= 3_000, `${written} rows`);
});

for (const [name, { finds, logOf }] of Object.entries(MUTANTS)) {
  test(`the torture finds out a reader that ${name}`, async () => {
    await using scene = new Scene({ url: server.url, seed: 3, logOf });
    await scene.start();
    await deliver(scene, 1_500);
    const { wrong } = await scene.finish();
    assert.ok(
      wrong.some((what) => finds.test(what)),
      `${wrong.length} found: ${wrong.slice(0, 5).join("; ")}`,
    );
  });
}

test("the verdict names what is lost, doubled, unknown or out of order", () => {
  const rows = [1, 2, 3].map((position) => ({ position, key: "k", n: position }));
  const written = new Map(rows.map((row) => [row.position, row]));
  assert.deepEqual(verdict(rows, written), []);
  assert.deepEqual(verdict([rows[0]!, rows[2]!], written), ["row 2 (k 2) was lost"]);
  assert.deepEqual(verdict([rows[1]!, rows[0]!, rows[2]!], written), ["k: 1 came after 2"]);
  assert.equal(verdict([...rows, rows[2]!], written)[0], "row 3 (k 3) was delivered twice");
  assert.equal(verdict([...rows, { position: 4, key: "k", n: 4 }], written)[0], "row 4 (k 4) is not in the table");
});
