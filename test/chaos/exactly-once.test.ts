import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { surviveOutage } from "./exactly-once/outage.ts";
import { type ProofReport, proveExactlyOnce } from "./exactly-once/proof.ts";
import { describeReport } from "./exactly-once/report.ts";

const seed = Number(process.env.CHAOS_SEED ?? Date.now() % 1_000_000);
/** Long enough for an honest transaction, short enough that a request which is kept back comes after it. */
const transactionTimeoutMs = 4_000;

describe("exactly once into Kafka", () => {
  test("A2 A3 F1: kill -9, pauses, a broker's death, a failover and late requests leave each event once and in order for a read_committed reader", async (t) => {
    t.diagnostic(`CHAOS_SEED=${seed}`);
    const report = await proveExactlyOnce({
      ...{ seed, version: 18, brokers: 1, relays: 2, replicated: true, transactionTimeoutMs },
      kills: 8,
      // What is written beyond a few hundred events a second only keeps the processors busy.
      writePauseMs: 20,
      behindMs: 2_000,
      secondsMax: 45,
      blowsMin: 6,
      plan: ["kill", "kill", "pause", "kill", "brokerKill", "kill", "cut"],
      log: (line) => t.diagnostic(line),
    });
    t.diagnostic(describeReport(report));
    assertTroubled(report);
    assert.deepEqual(report.verdict.violations, [], describeReport(report));
  });

  test("A4 A19: an outage of all brokers spends no attempt, costs no memory and is over by itself", async (t) => {
    t.diagnostic(`CHAOS_SEED=${seed}`);
    const report = await surviveOutage({
      ...{ seed, version: 18, brokers: 1, relays: 2, transactionTimeoutMs },
      seconds: 5,
      log: (line) => t.diagnostic(line),
    });
    const { verdict, backlog, attemptsSpent, holds, memoryMbBefore, memoryMbDuring, memoryMbAfter } = report;
    t.diagnostic(JSON.stringify({ ...report, verdict: verdict.violations.length }));
    assert.ok(backlog > 1_000, `only ${backlog} events waited`);
    assert.deepEqual({ attemptsSpent, holds }, { attemptsSpent: 0, holds: 0 });
    assert.deepEqual(verdict.violations, []);
    const growthMb = memoryMbDuring - memoryMbBefore;
    assert.ok(growthMb < 40, `a relay's memory grew by ${growthMb} MB while the events waited in the database`);
    assert.ok(memoryMbAfter < 256, `a relay needed ${memoryMbAfter} MB to deliver what had waited`);
  });
});

/** Without these the run would show nothing. */
function assertTroubled({ verdict, blows, cutOpen, late, failovers }: ProofReport): void {
  assert.ok(verdict.events > 1_000, `only ${verdict.events} events were written`);
  assert.ok(blows.kill >= 3, `only ${blows.kill} relays were killed`);
  assert.ok(cutOpen > 0, "no transaction was cut open");
  assert.ok(late.late > 5, `only ${late.late} requests came late`);
  assert.equal(failovers, 1);
}
