import assert from "node:assert/strict";
import { test } from "node:test";
import { until } from "../../test/servers/until.ts";
import { delivered } from "../core/outcome.ts";
import { type Answer, memoryPublisher } from "../publishers/memory/memory-publisher.ts";
import { memorySource } from "../sources/memory/memory-source.ts";
import { createRelay } from "./relay.ts";

test("H1 B5 a lane claims no more than a batch, and writes down what is on its way for long", async () => {
  const source = memorySource({ durableClaims: true });
  const publisher = memoryPublisher({ keyOrderInBatch: false });
  const answers: (() => void)[] = [];
  publisher.respond(() => new Promise<Answer>((resolve) => answers.push(() => resolve(delivered))));
  for (const id of ["a1", "a2", "a3", "a4", "a5"]) source.insert({ id, type: "t", key: "a", payload: id });
  await using relay = createRelay({
    sources: [source],
    destinations: { out: publisher },
    lanes: 1,
    limits: { batchSize: 3 },
    timing: { pollIntervalMs: 10, publishTimeoutMs: 5_000 },
  });
  const sending = () => source.database.tables.pipelines.get("memory->out")?.lanes.get(0)?.sending;
  const claimed = () => source.pending().filter(({ state }) => state === "DELIVERING").length;
  await relay.start();
  await until("the first one is noted", () => sending()?.length === 1);
  assert.deepEqual([sending(), claimed()], [["a1"], 3]);
  answers.shift()!();
  await until("the second one is", () => sending()?.at(-1) === "a2");
  assert.ok(claimed() <= 3);
  publisher.respond(null);
  answers.shift()!();
  await until("all is delivered", () => source.pending().length === 0);
});
