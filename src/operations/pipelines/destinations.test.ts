import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type PostgresServer, startPostgres } from "../../../test/servers/postgres.ts";
import { openAsRelay } from "../../../test/servers/relay-role.ts";
import { writeSettings } from "../../postgres/lanes.ts";
import { registerPipeline } from "../../postgres/pipelines.ts";
import type { Database } from "../../postgres/pool.ts";
import { transaction } from "../../postgres/transaction.ts";
import { knownDestinations, limitDestination, pauseDestination, resumeDestination } from "./destinations.ts";
import { limitPipelines } from "./limit.ts";
import { resumePipelines } from "./pause.ts";
import { type KnownPipeline, knownPipelines } from "./pipelines.ts";

let server: PostgresServer;
let database: Database;

before(async () => {
  server = await startPostgres({ version: 18 });
  database = await openAsRelay(server);
});
after(async () => {
  await database.close();
  await server[Symbol.asyncDispose]();
});

async function register(...names: string[]): Promise<void> {
  for (const name of names) {
    const source = { schema: "app", table: name.split("->")[0] ?? "" };
    await transaction(database.pool, writeSettings(database, "a test"), (session) =>
      registerPipeline(session, database, { name, source, lanes: 1, takes: null }),
    );
  }
}

const pipeline = async (name: string): Promise<KnownPipeline> =>
  (await knownPipelines(database)).find((it) => it.pipeline === name) ?? assert.fail(`there is no ${name}`);

const wishOf = async (name: string) =>
  (await knownDestinations(database)).find(({ destination }) => destination === name) ?? assert.fail(name);

const changed = (changes: readonly { readonly pipeline: string; readonly hasChanged: boolean }[] | null) =>
  changes?.map(({ hasChanged, pipeline: name }) => `${name} ${hasChanged}`);

test("F3 one pause stops every pipeline of a destination, a new one too, until it is resumed", async () => {
  await register("a->slow", "b->slow[order.*]", "c->other");
  const mia = { by: "mia", reason: "3 s a request", via: "api" } as const;
  assert.deepEqual(changed(await pauseDestination(database, "slow", mia)), ["a->slow true", "b->slow[order.*] true"]);
  assert.deepEqual(changed(await pauseDestination(database, "slow", mia)), ["a->slow false", "b->slow[order.*] false"]);
  assert.equal((await pipeline("b->slow[order.*]")).pause?.by, "mia");
  assert.equal((await pipeline("c->other")).pause, null);
  assert.equal(await pauseDestination(database, "slo", mia), null, "a name that no pipeline has");

  await register("d->slow", "e->other");
  assert.equal((await pipeline("d->slow")).pause?.reason, "3 s a request", "added while the destination is paused");
  assert.equal((await pipeline("e->other")).pause, null);
  assert.equal((await wishOf("slow")).pipelines.length, 3);

  assert.equal((await resumeDestination(database, "slow", mia))?.filter(({ hasChanged }) => hasChanged).length, 3);
  await register("f->slow");
  assert.equal((await pipeline("f->slow")).pause, null);
  const { rows } = await server.query<{ action: string; target: string }>(
    "select action, target from outbox_relay.audit order by id",
  );
  assert.deepEqual(
    rows.filter(({ target }) => target === "slow").map(({ action }) => action),
    ["pause", "resume"],
    "a repeated pause changes nothing, and is not recorded",
  );
  assert.equal(rows.filter(({ target }) => target === "a->slow").length, 2);
});

test("F3 a destination whose pipelines were all resumed one by one is no longer paused", async () => {
  await register("a->one", "b->one");
  await pauseDestination(database, "one", { by: "mia" });
  await resumePipelines(database, ["a->one"], { by: "mia" });
  assert.notEqual((await wishOf("one")).pause, null, "one of two is still paused");
  await resumePipelines(database, ["b->one"], { by: "mia" });
  assert.equal((await wishOf("one")).pause, null);
});

test("F3 one limit holds for every pipeline of a destination, a new one too, and ends", async () => {
  await register("a->lim", "b->lim");
  await limitDestination(database, "lim", 5, { by: "mia", reason: "gently" });
  await register("c->lim");
  const limits = async () =>
    (await knownPipelines(database)).flatMap(({ limit, pipeline: name }) =>
      name.endsWith("->lim") ? [limit?.perSecond ?? null] : [],
    );
  assert.deepEqual(await limits(), [5, 5, 5]);
  await assert.rejects(limitDestination(database, "lim", 0, { by: "mia" }), /Invalid rate limit/);
  await limitPipelines(database, ["a->lim"], null, { by: "mia" });
  assert.deepEqual([await limits(), (await wishOf("lim")).limit?.perSecond], [[null, 5, 5], 5]);
  await limitDestination(database, "lim", null, { by: "mia" });
  assert.deepEqual([await limits(), (await wishOf("lim")).limit], [[null, null, null], null]);
});

test("F3 a pipeline that is registered during a pause of its destination is paused", async () => {
  await register("a->race");
  const names = Array.from({ length: 12 }, (_, index) => `x${index}->race`);
  await Promise.all([...names.map((name) => register(name)), pauseDestination(database, "race", { by: "mia" })]);
  const running = (await knownPipelines(database)).filter(
    ({ pause, pipeline: name }) => name.endsWith("race") && !pause,
  );
  assert.deepEqual(running, []);
});
