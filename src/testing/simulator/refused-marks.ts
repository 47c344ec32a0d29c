import type { MemoryHoldRow } from "../../sources/memory/memory-tables.ts";
import corpus from "./corpus.json" with { type: "json" };
import { withLostCommits } from "./lost-commits.ts";
import type { Scenario } from "./scenario.ts";
import { SeededRandom } from "./seeded-random.ts";
import type { SimSlot } from "./sim-slot.ts";
import type { Simulation } from "./simulation.ts";
import { withStayingFault } from "./staying-faults.ts";

/** Seeds of the corpus keep their meaning. */
const OLDER: ReadonlySet<number> = new Set([...corpus.seeds, ...corpus.plain, ...corpus.later]);
const SHARE = 0.1;
/** A lane stops after this many rows that it could not mark; what was in flight by then is added. */
const UNMARKED_STOP = 10;
/** Long enough for the owner of a lane to have reported its unmarked rows. */
const REPORTED_MS = 4_000;

/** Faults that were added later. Each draws from a stream of its own, so that older seeds keep their meaning. */
export function withLaterFaults(scenario: Scenario): Scenario {
  return withStayingFault(withRefusedMarks(withLostCommits(scenario)));
}

/** In some seeds rows cannot be marked for a while, as under a trigger that undoes the update. */
function withRefusedMarks(scenario: Scenario): Scenario {
  const random = new SeededRandom(scenario.seed, 11);
  const { calmFromMs, durableClaims, outage, rates, seed, timed } = scenario;
  const isOut = OLDER.has(seed) || durableClaims || outage !== null || rates.failover !== undefined;
  if (isOut || timed.some(({ kind }) => kind === "failover") || !random.chance(SHARE)) return scenario;
  const plan = {
    kind: "marks refused" as const,
    atMs: random.between(0, calmFromMs * 0.4),
    target: 0,
    forMs: random.int(5_000, 20_000),
    amount: random.int(1, 3),
  };
  return { ...scenario, timed: [...timed, plan] };
}

/** Begins the fault. Just before it ends its lanes must have stopped after few rows, and their owners must say so. */
export function refuseMarks(simulation: Simulation, forMs: number, nth: number): void {
  const { database, time } = simulation.world;
  database.refuseMarks(forMs, nth);
  const known = new Map<SimSlot, readonly string[]>();
  time.after(Math.max(1, forMs - REPORTED_MS), () => {
    for (const slot of simulation.slots)
      known.set(
        slot,
        unmarkedOf(simulation, slot).map(({ id }) => id),
      );
  });
  time.after(forMs - 1, () => {
    checkStopped(simulation);
    for (const slot of simulation.slots) checkReported(simulation, slot, known.get(slot) ?? []);
  });
}

function checkStopped({ scenario, world }: Simulation): void {
  const { database, history } = world;
  const max = UNMARKED_STOP + (scenario.limits.inFlightEventsMax ?? Number.POSITIVE_INFINITY);
  for (const [name, { holds }] of database.model.tables.pipelines) {
    const unmarked = [...holds.values()].filter((hold) => hold.unmarked !== undefined);
    for (const [lane, { length }] of Map.groupBy(unmarked, (hold) => hold.lane)) {
      if (length > max)
        history.violate("unmarked", `lane ${lane} of ${name} sent ${length} events that it cannot mark`);
    }
  }
}

/** Health: while a process owns a lane with unmarked rows, its source is broken. */
function checkReported(simulation: Simulation, slot: SimSlot, before: readonly string[]): void {
  const { database, history } = simulation.world;
  if (slot.process === null || slot.process.isPaused || !database.isUp) return;
  const still = unmarkedOf(simulation, slot).filter((hold) => before.includes(heldUnder(simulation, hold)));
  if (still.length === 0 || slot.condition.brokenSources().length > 0) return;
  history.violate("health", `${slot.process.name} says nothing of ${still.length} rows that it cannot mark`);
}

/** The event and the epoch of its lane: an owner that has just taken the lane again reports it a moment later. */
function heldUnder({ world }: Simulation, { id, lane }: MemoryHoldRow): string {
  const epochs = [...world.database.model.tables.pipelines.values()].map(({ lanes }) => lanes.get(lane)?.epoch);
  return [id, ...epochs].join(" ");
}

/** Holds of unmarked rows in the lanes that the slot's process owns. */
function unmarkedOf({ world }: Simulation, { process }: SimSlot): readonly MemoryHoldRow[] {
  const { instances, pipelines } = world.database.model.tables;
  return [...pipelines.values()].flatMap(({ holds, lanes }) =>
    [...holds.values()].filter(
      ({ lane, unmarked }) =>
        unmarked !== undefined &&
        process !== null &&
        instances.get(lanes.get(lane)?.owner ?? "")?.name === process.name,
    ),
  );
}
