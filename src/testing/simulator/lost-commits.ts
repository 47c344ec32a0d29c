import corpus from "./corpus.json" with { type: "json" };
import type { Scenario, TimedPlan } from "./scenario.ts";
import { SeededRandom } from "./seeded-random.ts";

/** Seeds that were in the corpus before this fault: their scenarios must not change. */
const OLDER: ReadonlySet<number> = new Set([...corpus.seeds, ...corpus.plain, ...corpus.later]);

const SHARE = 0.15;
/** The new primary is available at once, so that requests on the wire survive the failover. */
const DOWN_MS = 2;

/**
 * In some seeds failovers lose events while they are read and sent, and the application reuses the lost ids at once for
 * other events. A settle after that would mark events that were never sent.
 */
export function withLostCommits(scenario: Scenario): Scenario {
  const random = new SeededRandom(scenario.seed, 10);
  const isOut = OLDER.has(scenario.seed) || scenario.isCalm || scenario.outage !== null;
  if (isOut || !random.chance(SHARE)) return scenario;
  const { calmFromMs, rates, timed, writes } = scenario;
  const failovers = Array.from({ length: random.int(2, 6) }, (): TimedPlan => {
    const { atMs, commitsAfterMs } = random.pick(writes);
    return {
      kind: "failover",
      atMs: Math.min(calmFromMs, atMs + commitsAfterMs + random.between(1, random.pick([20, 200, 800]))),
      target: 0,
      forMs: DOWN_MS,
      amount: random.int(1, 10),
    };
  });
  const slowPublishes = Math.max(rates["slow publish"] ?? 0, random.pick([0.1, 0.4]));
  return {
    ...scenario,
    timed: [...timed, ...failovers],
    rates: { ...rates, failover: rates.failover ?? 1, "slow publish": slowPublishes },
    idsAgain: { chance: 0.9, withinMs: 100 },
  };
}
