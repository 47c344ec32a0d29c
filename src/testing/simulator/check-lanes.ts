import { mayStandStill } from "./check-transactions.ts";
import type { LaneWrite } from "./history.ts";
import type { Simulation } from "./simulation.ts";

/** Epochs rise, and only one instance writes under an epoch. */
export function checkLanes(simulation: Simulation): void {
  const { history } = simulation.world;
  const { rates } = simulation.scenario;
  // An epoch can repeat only if a failover loses it and the clock also steps back; the owner still differs.
  const mayRepeat = rates.failover !== undefined && rates["database clock back"] !== undefined;
  for (const writes of Map.groupBy(history.laneWrites, ({ pipeline, lane }) => `${pipeline} ${lane}`).values()) {
    const taken = writes.filter(({ kind }) => kind === "takeOver");
    if (!mayRepeat) checkRising(simulation, taken);
    for (const [epoch, ofEpoch] of Map.groupBy(writes, (write) => write.epoch)) {
      const owners = new Set(ofEpoch.map(({ owner }) => owner));
      if (owners.size > 1 && !mayRepeat) history.violate("lanes", `epoch ${epoch} has ${owners.size} owners`);
    }
  }
}

function checkRising(simulation: Simulation, taken: readonly LaneWrite[]): void {
  for (const [index, { epoch, lane }] of taken.entries()) {
    const before = taken[index - 1];
    if (before === undefined || before.epoch < epoch) continue;
    simulation.world.history.violate("lanes", `lane ${lane} went from epoch ${before.epoch} to ${epoch}`);
  }
}

/** Without faults every lane is owned by a living instance, and no instance has more than its share. */
export function checkShare(simulation: Simulation): void {
  const { history, database, leaseMs, time } = simulation.world;
  // Behind the brake of a lane an event that crashes the process may still be retried.
  const wasCrash = history.disturbances.some(({ what, atMs }) => what === "crash" && atMs > time.nowMs - 3 * leaseMs);
  // After the database's clock stepped back, leases of dead instances last longer.
  const isUnsure = simulation.scenario.rates["database clock back"] !== undefined;
  if (simulation.drainedAtMs === null || wasCrash || isUnsure) return;
  const { pipelines, instances } = database.model.tables;
  const living = simulation.slots.filter(({ process }) => process !== null).length;
  for (const { name, lanes } of pipelines.values()) {
    const isStuck = [...lanes.values()].some((lane) => mayStandStill(simulation, name, lane));
    if (isStuck || isVoidedByUnansweredSend(simulation, name)) continue;
    const byOwner = Map.groupBy(lanes.values(), ({ owner }) => owner);
    for (const [owner, owned] of byOwner) {
      if (owner === null || !instances.has(owner))
        history.violate("share", `${owned.length} lanes of ${name} are free`);
      else if (owned.length > Math.ceil(lanes.size / living)) {
        history.violate("share", `one of ${living} instances owns ${owned.length} lanes of ${name}`);
      }
    }
  }
}

/**
 * An unanswered transaction voids its lane. The owner takes it again at once and rarely hands it over, so after the event
 * is dead the lanes still have to be rebalanced.
 */
function isVoidedByUnansweredSend({ brokers, world }: Simulation, pipeline: string): boolean {
  const { history, database, leaseMs, time } = world;
  const broker = brokers.find(({ options }) => pipeline.endsWith(`->${options.name}`));
  if (broker === undefined || broker.transactions === null) return false;
  const silent = history.written.filter(({ fate }) => fate.kind === "silent");
  const isFresh = history.laneWrites.some(
    (write) => write.kind === "takeOver" && write.pipeline === pipeline && write.atMs > time.nowMs - leaseMs,
  );
  return silent.some(({ id }) => isFresh || database.model.tables.open.has(id));
}

/** With durable claims a row is locked exactly while DELIVERING and has a delivery time exactly if DELIVERED. */
export function checkClaims(simulation: Simulation): void {
  const { history, database } = simulation.world;
  const { open, closed } = database.model.tables;
  for (const { id, state, lockedBy, lockedAtMs, deliveredAtMs } of [...open.values(), ...closed.values()]) {
    const isLocked = lockedBy !== null || lockedAtMs !== null;
    if (isLocked !== (state === "DELIVERING")) history.violate("claims", `${id} is ${state} and locked: ${isLocked}`);
    if ((deliveredAtMs !== null) !== (state === "DELIVERED")) history.violate("claims", `${id} is ${state}`);
  }
}
