import corpus from "./corpus.json" with { type: "json" };
import type { Scenario, TimedPlan } from "./scenario.ts";
import { SeededRandom } from "./seeded-random.ts";

/** Seeds of the corpus keep their meaning. */
const OLDER: ReadonlySet<number> = new Set([...corpus.seeds, ...corpus.plain, ...corpus.later]);
const SHARE = 0.06;
const KINDS = ["column missing", "database down", "destination down", "maintenance lock", "topic down"] as const;

/**
 * In some seeds one fault stays for much longer than anything that the relay waits for. All events are written by its end, so
 * nothing moves meanwhile, and the relay must say so.
 */
export function withStayingFault(scenario: Scenario): Scenario {
  const random = new SeededRandom(scenario.seed, 12);
  if (!random.chance(SHARE) || OLDER.has(scenario.seed) || scenario.outage !== null) return scenario;
  const { calmFromMs, timed } = scenario;
  const plan: TimedPlan = {
    kind: random.pick(KINDS),
    atMs: random.between(0, calmFromMs * 0.5),
    target: random.int(0, 1_000),
    forMs: calmFromMs + random.int(40_000, 70_000),
    amount: 0,
  };
  // The other faults end before it is noticed: what they interrupt is not expected to be reported.
  const before = timed.filter(({ atMs }) => atMs < plan.atMs + calmFromMs / 4);
  return { ...scenario, calmFromMs: Math.ceil(plan.atMs + plan.forMs), timed: [...before, plan] };
}
