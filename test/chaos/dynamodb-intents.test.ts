import assert from "node:assert/strict";
import { test } from "node:test";
import { describeVerdict, faultsOf, proveIntents } from "./dynamodb/intent-proof.ts";

test("D2 D3 D4 D5: DynamoDB killed -9 and restarted amid 600 intents through the Lambda handlers and the local runner: 0 lost, keys carried, dead letters in their table", async (t) => {
  const verdict = await proveIntents({
    intents: 600,
    kills: 1,
    runnerKills: 1,
    runners: 1,
    seed: 8,
    drainMs: 180_000,
    log: (line) => t.diagnostic(line),
  });
  t.diagnostic(describeVerdict(verdict));
  assert.deepEqual(faultsOf(verdict), { lost: [], unknown: [], unmarked: [], withoutKey: [], wronglyDead: [] });
  assert.equal(verdict.dead.length, verdict.deadExpected);
  assert.equal(verdict.deadExpected, 12);
  assert.ok(verdict.duplicates <= verdict.duplicatesMax, describeVerdict(verdict));
});
