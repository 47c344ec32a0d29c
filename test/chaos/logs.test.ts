import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type ProofReport, proveExactlyOnce } from "./exactly-once/proof.ts";
import { describeReport } from "./exactly-once/report.ts";
import type { Blow } from "./exactly-once/strikes.ts";

const seed = Number(process.env.CHAOS_SEED ?? Date.now() % 1_000_000);
/** Whatever the seed draws besides, each of these falls. */
const plan: readonly Blow[] = ["databaseKill", "kill", "databaseKill", "terminate", "databaseKill", "pause"];

describe("a log into Kafka, exactly once, while 8 connections write", { concurrency: 2 }, () => {
  test("A1 A2 A3 B4 D9: managed outbox: kill -9 of relays and immediate restarts of PostgreSQL lose, double and swap nothing", async (t) => {
    const report = await prove("managed", (line) => t.diagnostic(line));
    assertTroubled(report);
    assert.deepEqual(report.verdict.violations, [], describeReport(report));
  });

  test("A1 A2 A3 B4 D9: write-ahead log: kill -9 of relays and immediate restarts of PostgreSQL lose, double and swap nothing", async (t) => {
    const report = await prove("wal", (line) => t.diagnostic(line));
    assertTroubled(report);
    assert.deepEqual(report.verdict.violations, [], describeReport(report));
  });
});

async function prove(source: "managed" | "wal", log: (line: string) => void): Promise<ProofReport> {
  log(`CHAOS_SEED=${seed}`);
  const report = await proveExactlyOnce({
    ...{ source, seed, version: 18, brokers: 1, relays: 2, replicated: false, writers: 8, writePauseMs: 30 },
    ...{ transactionTimeoutMs: 3_000, kills: 3, secondsMax: 4, blowsMin: 3, plan, log },
  });
  log(describeReport(report));
  return report;
}

/** Without these the run would show nothing. */
function assertTroubled({ verdict, blows, parked, restarts, takeOvers }: ProofReport): void {
  assert.ok(verdict.events > 500, `only ${verdict.events} events were written`);
  assert.ok(blows.kill >= 1, "no relay was killed");
  assert.ok(restarts >= 2, `PostgreSQL was ended ${restarts} times only`);
  assert.ok(parked > 0, "no event was parked");
  assert.ok(takeOvers > 2, `only ${takeOvers} lanes were taken`);
}
