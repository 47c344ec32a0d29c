import assert from "node:assert/strict";
import { test } from "node:test";
import { proveRequests } from "./requests/proof.ts";
import { describeReport } from "./requests/report.ts";

const seed = Number(process.env.CHAOS_SEED ?? Date.now() % 1_000_000);

test("E1 E3 E4 E5 E6 E7: relays, workers, Redis and the event store killed and frozen from command to outcome: one outcome per request, one job per event", async (t) => {
  t.diagnostic(`CHAOS_SEED=${seed}`);
  const report = await proveRequests({
    ...{ seed, requests: 60, seconds: 8, subscription: "all", checkpoints: "eventstore" },
    plan: [
      "workerKill",
      "relayKill",
      "redisKill",
      "relayPause",
      "workerPause",
      "storeKill",
      "redisForget",
      "relayKill",
    ],
    log: (line) => t.diagnostic(line),
  });
  t.diagnostic(describeReport(report));
  const { blows, turns, verdict } = report;
  assert.ok(blows.workerKill > 0 && blows.relayKill > 0 && blows.redisKill > 0 && blows.relayPause > 0);
  assert.ok(turns > 1, "no relay took over from another");
  assert.ok(verdict.retries > 0, "no request was tried again");
  assert.equal(verdict.completed + verdict.failed, verdict.requests);
  assert.deepEqual(verdict.violations, [], describeReport(report));
});
