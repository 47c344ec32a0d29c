import assert from "node:assert/strict";
import { test } from "node:test";
import { RelayApiError } from "../../src/client/index.ts";
import { openOperations } from "../../src/in-process/index.ts";
import { createRelay, openDatabase, postgresSource } from "../../src/index.ts";
import { memoryPublisher } from "../../src/publishers/memory/memory-publisher.ts";
import { type ReplayStage, replayStage } from "./replay-stage.ts";
import { serverOfFile } from "./service-stage.ts";

const server = serverOfFile();

/** A relay in this process, whose destination refused three events, and the operations beside it. */
async function embedded() {
  const started = new AsyncDisposableStack();
  const stage: ReplayStage = started.use(await replayStage(server(), "discard:"));
  const database = openDatabase({ url: stage.relayUrl, applicationName: "operations", connectionsMax: 2 });
  started.defer(() => database.close());
  const publisher = memoryPublisher();
  const source = postgresSource({ database: { url: stage.relayUrl }, table: "orders.outbox" });
  const relay = started.use(
    createRelay({
      sources: [source],
      destinations: { http: publisher },
      timing: { pollIntervalMs: 50, balanceMs: 200 },
    }),
  );
  await relay.start();
  await relay.ready;
  await stage.bury({ count: 3, followers: 1 });
  const operations = started.use(openOperations({ database, by: "the shop" }));
  return { database, operations, publisher, [Symbol.asyncDispose]: () => started.disposeAsync() };
}

test("H4 the operations of the API work in the process of the application, on its own relay", async () => {
  await using it = await embedded();
  const { operations, publisher } = it;
  const ids: string[] = [];
  for await (const { deadLetters } of operations.pages("listDeadLetters", { limit: 2, resolved: false })) {
    ids.push(...deadLetters.map(({ id }) => id));
  }
  assert.equal(ids.length, 3);
  const [pipeline] = (await operations.status()).pipelines;
  await operations.limitPipeline({ name: pipeline?.pipeline ?? "", perSecond: 500, reason: "a test" });

  const plan = await operations.planReplay({ all: true, reason: "repaired" });
  assert.deepEqual([plan.state, plan.count, publisher.delivered.length], ["planned", 3, 0]);
  await operations.runReplay({ id: plan.id });
  const ended = await operations.waitForReplay(plan.id);
  assert.deepEqual([ended.state, ended.progress.done, ended.createdBy], ["done", 3, "the shop"]);
  await publisher.arrived(6);
  const { entries } = await operations.listAudit({ target: pipeline?.pipeline });
  assert.deepEqual(entries.map(({ action, actor, reason }) => [action, actor, reason])[0], [
    "limit",
    "the shop",
    "a test",
  ]);
});

test("H4 they fail as those of the client do, and take up a plan that nobody carries out", async () => {
  await using it = await embedded();
  const { database, operations } = it;
  await assert.rejects(operations.pausePipeline({ name: "nowhere" }), (error: unknown) => {
    assert.ok(error instanceof RelayApiError);
    assert.deepEqual([error.status, error.code], [404, "NOT_FOUND"]);
    return /Pipelines here: orders\.outbox->http/.test(error.fix ?? "");
  });
  await assert.rejects(operations.listEvents({ limit: 0 }), { status: 400, code: "BAD_REQUEST", message: /limit/ });
  const plan = await operations.planReplay({ all: true });
  // As after a crash of the process that had started it.
  const gone = openOperations({ database, by: "a process that ended" });
  await gone.close();
  assert.equal((await gone.runReplay({ id: plan.id })).state, "running");
  const ended = await operations.waitForReplay(plan.id);
  assert.deepEqual([ended.state, ended.progress.done], ["done", 3]);
});
