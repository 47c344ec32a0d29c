import assert from "node:assert/strict";
import { test } from "node:test";
import { until } from "../../test/servers/until.ts";
import { delivered } from "../core/outcome.ts";
import { type MemoryAnswer, memoryPublisher } from "../publishers/memory/memory-publisher.ts";
import { memorySource } from "../sources/memory/memory-source.ts";
import { createRelay } from "./relay.ts";

test("H1 B5 a lane claims at most a batch, half of it of one key, and stores which events are on the wire for long", async () => {
  const source = memorySource({ durableClaims: true });
  const publisher = memoryPublisher({ keyOrderInBatch: false });
  const answers: (() => void)[] = [];
  publisher.respond(() => new Promise<MemoryAnswer>((resolve) => answers.push(() => resolve(delivered))));
  for (const id of ["a1", "a2", "a3", "a4", "b1", "c1", "d1"])
    source.insert({ id, type: "t", key: id.charAt(0), payload: id });
  await using relay = createRelay({
    sources: [source],
    destinations: { out: publisher },
    lanes: 1,
    limits: { batchSize: 4 },
    timing: { pollIntervalMs: 10, publishTimeoutMs: 5_000 },
  });
  const sending = () => source.database.tables.pipelines.get("memory->out")?.lanes.get(0)?.sending ?? [];
  const claimed = () =>
    source
      .pending()
      .filter(({ state }) => state === "DELIVERING")
      .map(({ id }) => id)
      .join();
  await relay.start();
  await until("the first events are noted", () => sending().length === 3);
  assert.deepEqual([sending(), claimed()], [["a1", "b1", "c1"], "a1,a2,b1,c1"]);
  answers.shift()!();
  await until("the second event of the key is on the wire", () => sending().includes("a2"));
  assert.ok(claimed().split(",").length <= 4, claimed());
  publisher.respond(null);
  for (const answer of answers) answer();
  await until("all events are delivered", () => source.pending().length === 0);
});
