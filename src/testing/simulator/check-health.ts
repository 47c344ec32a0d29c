import type { MemoryHoldRow } from "../../sources/memory/memory-tables.ts";
import type { SimSlot } from "./sim-slot.ts";
import type { Simulation } from "./simulation.ts";

/** Long enough for every loop to run into a persistent fault. */
const NOTICED_MS = 8_000;

/** Health: a process reports that its source refuses everything. With other faults the time of detection is unknown. */
export function checkReported({ scenario, world }: Simulation, slot: SimSlot, forMs: number): void {
  const { database, history, time } = world;
  // While the table is also locked, the refusal comes only after the lock.
  const fromMs = time.nowMs - forMs;
  const isLocked = scenario.timed.some(
    (plan) => plan.kind === "maintenance lock" && plan.atMs < time.nowMs && plan.atMs + plan.forMs > fromMs,
  );
  if (isLocked) return;
  if (!scenario.isCalm || forMs < NOTICED_MS || !database.lacksColumn || slot.process === null) return;
  const { instances, pipelines } = database.model.tables;
  const ids = [...instances.values()].filter(({ name }) => name === slot.process?.name).map(({ id }) => id);
  const owned = [...pipelines.values()]
    .flatMap(({ lanes }) => [...lanes.values()])
    .filter(({ owner }) => ids.includes(owner ?? ""));
  if (owned.length === 0 || slot.condition.brokenSources().length > 0) return;
  history.violate("health", `${slot.process.name} reports healthy while its source refuses everything`);
}

/** Health: the owner reports a lane that reads no new events because of its failed ones. */
export function checkBraked({ scenario, slots, world }: Simulation): void {
  const { history, database } = world;
  if (history.violations.length > 0) return;
  const max = scenario.limits.holdsPerLaneMax ?? Number.POSITIVE_INFINITY;
  const braked = new Set(
    slots.flatMap((slot) => slot.condition.brakedLanes().map(({ lane, pipeline }) => `${pipeline} ${lane}`)),
  );
  const broken = new Set(slots.flatMap((slot) => slot.condition.brokenSources().map(({ pipeline }) => pipeline)));
  const { instances, pipelines } = database.model.tables;
  for (const [name, { holds, lanes }] of pipelines) {
    for (const { lane, owner } of lanes.values()) {
      const blocking = [...holds.values()].filter((hold) => hold.lane === lane && blocksLane(hold)).length;
      const slot = slots.find(({ process }) => process !== null && process.name === instances.get(owner ?? "")?.name);
      // An owner that gave up the lane and is about to take it again reports it then.
      const ownedCount = [...lanes.values()].filter((other) => other.owner === owner).length;
      const isOwned = slot !== undefined && slot.condition.lanesOf(name) === ownedCount;
      if (isOwned && blocking >= max && !braked.has(`${name} ${lane}`) && !broken.has(name)) {
        history.violate(
          "health",
          `lane ${lane} of ${name} reads no new events because of ${blocking} holds, but no relay reports it`,
        );
      }
    }
  }
}

/** Whether a hold counts against the limit of its lane: all but suspects and dead letters that park no key. */
export function blocksLane({ key, parks, state }: MemoryHoldRow): boolean {
  return state === "retrying" || (state === "dead" && parks && key !== null);
}
