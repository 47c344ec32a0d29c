import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { until } from "../servers/until.ts";
import { drain, judgeScene, readOn } from "./exactly-once/drain.ts";
import { failOver } from "./exactly-once/failover.ts";
import { flow, openTheWay } from "./exactly-once/proof.ts";
import { openScene } from "./exactly-once/scene.ts";

const seed = Number(process.env.CHAOS_SEED ?? Date.now() % 1_000_000);

describe("failover of a managed outbox to an asynchronous standby", () => {
  test("A3 B4 D9: everything that the new primary holds is delivered once and in order, though it lacks the last commits", async (t) => {
    t.diagnostic(`CHAOS_SEED=${seed}`);
    const log = (line: string) => t.diagnostic(line);
    await using scene = await openScene({
      ...{ source: "managed", seed, version: 18, brokers: 1, relays: 2, replicated: true, writers: 8 },
      transactionTimeoutMs: 3_000,
    });
    const writer = scene.write();
    let settlesLost = 0;
    try {
      await flow(scene, 200);
      await openTheWay(scene, log);
      settlesLost = await failOver(scene.pair!, scene.stage);
      await until("the writer has found the new primary", () => writer.eras === 2);
      await flow(scene, 200);
    } finally {
      await writer.stop();
    }
    await drain(scene, log);
    await readOn(scene, writer, log);
    const { violations, ...counts } = await judgeScene(scene, writer);
    const told = JSON.stringify({ ...counts, settlesLost });
    t.diagnostic(told);
    assert.ok(settlesLost > 0, `the standby lacked no progress: ${told}`);
    assert.ok(counts.forgotten > 0, `no delivered event was forgotten: ${told}`);
    assert.deepEqual(violations.slice(0, 20), [], told);
  });
});
