import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { describeVerdict } from "../e2e/checker.ts";
import { type RoundsReport, runRounds } from "./relay-rounds.ts";

const seed = Number(process.env.CHAOS_SEED ?? Date.now() % 1_000_000);

describe("three relay processes on one database", () => {
  test("A3 B4 C5 D4: kill -9, a pause past the lease and SIGTERM lose nothing, keep the order of every key and repeat at most what was in flight", async (t) => {
    t.diagnostic(`CHAOS_SEED=${seed}`);
    const log = (line: string) => t.diagnostic(line);
    const report = await runRounds({
      seconds: 120,
      roundsMax: 6,
      seed,
      version: 18,
      blows: ["kill", "pause", "terminate"],
      log,
    });
    t.diagnostic(describeReport(report));
    assertNothingWrong(report);
    assert.ok(report.verdict.duplicates <= report.duplicatesMax, describeReport(report));
  });

  test("C1 G5: SIGTERM alone, in turn, repeats no event at all", async (t) => {
    t.diagnostic(`CHAOS_SEED=${seed}`);
    const log = (line: string) => t.diagnostic(line);
    const report = await runRounds({
      seconds: 120,
      roundsMax: 4,
      // Whoever stops in good order leaves its lease: none may end by itself, however busy the machine is.
      leaseMs: 30_000,
      seed: seed + 1,
      version: 18,
      blows: ["terminate"],
      log,
    });
    t.diagnostic(describeReport(report));
    assertNothingWrong(report);
    assert.ok(report.blows.terminate >= 2, "too few relays were stopped to say anything");
    assert.equal(report.lostByThemselves, 0, "an instance lost its lease though nobody paused it");
    assert.equal(report.verdict.duplicates, 0, describeReport(report));
  });
});

function assertNothingWrong({ verdict, publishedTotal }: RoundsReport): void {
  const { lost, unknown, inversions, corrupt, unmarked, markedInVain } = verdict;
  assert.ok(verdict.events > 200, `only ${verdict.events} events were written`);
  assert.deepEqual(
    { lost, unknown, inversions, corrupt, unmarked, markedInVain },
    { lost: [], unknown: [], inversions: [], corrupt: [], unmarked: [], markedInVain: [] },
    describeVerdict(verdict),
  );
  assert.equal(publishedTotal, verdict.events, "the relays counted an event twice or not at all");
}

function describeReport(report: RoundsReport): string {
  const { verdict, blows, duplicatesMax, takeOvers, lostAnswers, lostByThemselves } = report;
  const struck = `${blows.kill} kills, ${blows.pause} pauses, ${blows.terminate} stops, ${lostAnswers} lost answers, ${takeOvers} lanes taken`;
  return `${describeVerdict(verdict)}; at most ${duplicatesMax} duplicates; ${struck}; ${lostByThemselves} leases lost by themselves`;
}
