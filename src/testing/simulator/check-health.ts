import type { HoldRow } from "../../sources/memory/memory-tables.ts";
import type { SimSlot } from "./sim-slot.ts";
import type { Simulation } from "./simulation.ts";

/** Long enough for every loop to meet a fault that stays. */
const NOTICED_MS = 8_000;

/** Health: a process whose source refuses everything says so. Where more goes wrong, nobody knows when it could notice. */
export function checkTold({ scenario, world }: Simulation, slot: SimSlot, forMs: number): void {
  const { database, history } = world;
  // While the table is locked as well, the refusal comes after the lock.
  if (scenario.timed.some(({ kind }) => kind === "maintenance lock")) return;
  if (!scenario.isCalm || forMs < NOTICED_MS || !database.lacksColumn || slot.process === null) return;
  const { instances, pipelines } = database.model.tables;
  const ids = [...instances.values()].filter(({ name }) => name === slot.process?.name).map(({ id }) => id);
  const owned = [...pipelines.values()]
    .flatMap(({ lanes }) => [...lanes.values()])
    .filter(({ owner }) => ids.includes(owner ?? ""));
  if (owned.length === 0 || slot.condition.brokenSources().length > 0) return;
  history.violate("health", `${slot.process.name} calls itself healthy while its source refuses everything`);
}

/** Health: a lane that takes nothing new because of what failed is told by its owner, one way or another. */
export function checkBraked({ scenario, slots, world }: Simulation): void {
  const { history, database } = world;
  if (history.violations.length > 0) return;
  const max = scenario.limits.holdsPerLaneMax ?? Number.POSITIVE_INFINITY;
  const told = new Set(
    slots.flatMap((slot) => slot.condition.brakedLanes().map(({ lane, pipeline }) => `${pipeline} ${lane}`)),
  );
  const broken = new Set(slots.flatMap((slot) => slot.condition.brokenSources().map(({ pipeline }) => pipeline)));
  const { instances, pipelines } = database.model.tables;
  for (const [name, { holds, lanes }] of pipelines) {
    for (const { lane, owner } of lanes.values()) {
      const burdens = [...holds.values()].filter((hold) => hold.lane === lane && isBurden(hold)).length;
      const slot = slots.find(({ process }) => process !== null && process.name === instances.get(owner ?? "")?.name);
      // An owner that gave the lane up and is about to take it again reports it then.
      const ownedCount = [...lanes.values()].filter((other) => other.owner === owner).length;
      const isOwned = slot !== undefined && slot.condition.lanesOf(name) === ownedCount;
      if (isOwned && burdens >= max && !told.has(`${name} ${lane}`) && !broken.has(name)) {
        history.violate("health", `lane ${lane} of ${name} takes nothing new for ${burdens} holds, and nobody says so`);
      }
    }
  }
}

/** All but dead letters that keep nobody waiting, and notes of what is being sent. */
export function isBurden({ key, parks, state }: HoldRow): boolean {
  return state === "retrying" || (state === "dead" && parks && key !== null);
}
