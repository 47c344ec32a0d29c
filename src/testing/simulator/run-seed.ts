import { isDrained, probesBoundMs } from "./check-liveness.ts";
import { checkAll } from "./checks.ts";
import type { FaultKind } from "./faults.ts";
import { type Scenario, scenarioOf } from "./scenario.ts";
import { Simulation } from "./simulation.ts";

export interface SeedResult {
  readonly seed: number;
  readonly violations: readonly string[];
  /** Hash of the trace: equal for equal histories. */
  readonly hash: string;
  readonly fired: Readonly<Partial<Record<FaultKind, number>>>;
  readonly events: number;
  readonly virtualMs: number;
  readonly steps: number;
  readonly lines: readonly string[];
}

/** Runs one seed to its end and checks its invariants. */
export async function runSeed(seed: number, verbose = false): Promise<SeedResult> {
  const scenario = scenarioOf(seed);
  const simulation = new Simulation(scenario, verbose);
  const { history, time, faults } = simulation.world;
  const onUncaught = (error: unknown): void => {
    history.violate("crash", error instanceof Error ? (error.stack ?? error.message) : String(error));
  };
  process.on("unhandledRejection", onUncaught);
  try {
    await simulation.run(
      () => isDrained(simulation),
      () => drainWithinMs(scenario) + probesBoundMs(simulation),
    );
    // Node reports unhandled rejections at the end of a turn of the event loop.
    await new Promise((resolve) => setImmediate(resolve));
    checkAll(simulation);
  } finally {
    process.off("unhandledRejection", onUncaught);
  }
  return {
    seed,
    violations: history.violations,
    hash: history.hash,
    fired: Object.fromEntries(faults.fired),
    events: history.written.length,
    virtualMs: time.nowMs,
    steps: time.steps,
    lines: history.lines ?? [],
  };
}

/** Long enough for a hot key full of failing events; identifying an event that crashes the process takes many leases. */
function drainWithinMs({ writes, timing }: Scenario): number {
  const crashing = writes.flatMap(({ events }) => events).filter(({ fate }) => fate.kind === "crash").length;
  return 600_000 + crashing * 60 * (timing.leaseMs + 5_000);
}
