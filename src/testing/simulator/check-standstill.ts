import { laneOf } from "../../sources/memory/memory-lanes.ts";
import type { MemoryEventRow, MemoryPipelineTables } from "../../sources/memory/memory-tables.ts";
import type { Condition } from "../../telemetry/condition.ts";
import { destinationOf, lineOf } from "./check-delivery.ts";
import { isEndless } from "./check-liveness.ts";
import type { SimSlot } from "./sim-slot.ts";
import type { Simulation } from "./simulation.ts";

/** Longer than any retry, circuit or timeout of a scenario, and than three losses of a lane in a row. */
const STILL_MS = 30_000;
const LOOK_EVERY_MS = 1_000;

/** A process that does not run, or whose time jumps, cannot report. A failing call is no excuse. */
const EXCUSES: ReadonlySet<string> = new Set([
  ...["pause", "suspend", "process clock step", "database clock", "instance taken for dead", "renewal refused"],
]);

/** What was last seen of a pipeline or lane, and since when it is so. */
interface Seen {
  readonly what: string;
  readonly sinceMs: number;
}

/**
 * Health: a state in which nothing moves is never reported healthy, whatever the cause. Looks all the time: while an event
 * that can be delivered waits in a lane, and nothing of its pipeline was delivered, settled or held for long, the
 * owner of the lane must report something about the pipeline or its destination.
 */
export class StandstillWatch {
  readonly #simulation: Simulation;
  readonly #seen = new Map<string, Seen>();

  constructor(simulation: Simulation) {
    this.#simulation = simulation;
  }

  start(): void {
    const { time } = this.#simulation.world;
    time.after(LOOK_EVERY_MS, () => {
      this.#look();
      if (this.#simulation.drainedAtMs === null) this.start();
    });
  }

  #look(): void {
    const { world } = this.#simulation;
    const { history, time } = world;
    if (history.violations.length > 0) return;
    for (const pipeline of world.database.model.tables.pipelines.values()) {
      const progress = this.#progressOf(pipeline);
      for (const [lane, slot] of this.#longOwned(pipeline)) {
        const { name } = pipeline;
        // Once a fault is over and no longer reported, the events need a moment to move again.
        const report = reports(slot.condition, name) ? time.nowMs : "nothing";
        const stillForMs = time.nowMs - this.#since(`${name} ${lane} stands still`, `${progress} ${report}`);
        const row = stillForMs < STILL_MS ? undefined : this.#waiting(pipeline, lane);
        if (row === undefined) continue;
        const what = `${row.id} waits in lane ${lane} of ${name}, nothing moves for ${stillForMs.toFixed(0)} ms`;
        history.violate("health", `${what}, and ${slot.process?.name} reports nothing`);
      }
    }
  }

  /** Deliveries, settles and attempts. A send without an answer is no progress. */
  #progressOf({ holds, lanes, name }: MemoryPipelineTables): string {
    const { history } = this.#simulation.world;
    const arrivals = history.arrivals.filter(({ destination }) => name.endsWith(`->${destination}`)).length;
    const batches = [...lanes.values()].map(({ settledBatch }) => settledBatch);
    const attempts = [...holds.values()].map((hold) => `${hold.id} ${hold.state} ${hold.attempts} ${hold.crashes}`);
    return [arrivals, history.settled.size, ...batches, ...attempts].join();
  }

  /** Lanes whose owner has had them, and has lived undisturbed, for long. */
  #longOwned({ lanes, name }: MemoryPipelineTables): readonly (readonly [number, SimSlot])[] {
    const { slots, world } = this.#simulation;
    const { instances } = world.database.model.tables;
    return [...lanes.values()].flatMap(({ epoch, lane, owner }) => {
      const process = instances.get(owner ?? "")?.name;
      const slot = slots.find((it) => it.process !== null && it.process.name === process);
      const sinceMs = this.#since(`${name} ${lane}`, `${epoch} ${process}`);
      if (slot === undefined || slot.process?.isPaused || world.time.nowMs - sinceMs < STILL_MS) return [];
      return this.#wasDisturbed(slot) ? [] : [[lane, slot] as const];
    });
  }

  #wasDisturbed({ process }: SimSlot): boolean {
    const { history, time } = this.#simulation.world;
    const fromMs = time.nowMs - STILL_MS;
    return history.disturbances.some(
      ({ process: name, untilMs, what }) =>
        EXCUSES.has(what) && untilMs > fromMs && (name === null || name === process?.name),
    );
  }

  /** An event of the lane that waits for nothing but its delivery. */
  #waiting({ holds, name }: MemoryPipelineTables, lane: number): MemoryEventRow | undefined {
    const { scenario, world } = this.#simulation;
    const { database, history, time } = world;
    const { open, pauses } = database.model.tables;
    if (pauses.has(name)) return undefined;
    const held = [...holds.values()];
    const endless = history.written.filter((event) => open.has(event.id) && isEndless(this.#simulation, event));
    const endlessLines = new Set(
      endless.map((event) => (event.key === null ? event.id : lineOf(this.#simulation, event))),
    );
    const isOld = new Set(
      history.written.filter((it) => time.nowMs - it.committedAtMs >= STILL_MS).map(({ id }) => id),
    );
    return [...open.values()].find((row) => {
      const line = row.key === null ? row.id : lineOf(this.#simulation, row);
      const isOwn =
        name.endsWith(`->${destinationOf(this.#simulation, row.type)}`) && laneOf(row, scenario.lanes) === lane;
      const isHeld = held.some((hold) => hold.id === row.id || (row.key !== null && hold.key === row.key));
      // A durable claim that its process lost waits for the end of its own lease.
      const isFree = row.state === "PENDING" && row.availableAtMs <= database.model.nowMs();
      return isOwn && isFree && isOld.has(row.id) && !isHeld && !endlessLines.has(line);
    });
  }

  #since(name: string, what: string): number {
    const before = this.#seen.get(name);
    if (before?.what === what) return before.sinceMs;
    const { nowMs } = this.#simulation.world.time;
    this.#seen.set(name, { what, sinceMs: nowMs });
    return nowMs;
  }
}

function reports(condition: Condition, name: string): boolean {
  const lists = [condition.brokenSources(), condition.warnings(), condition.brakedLanes(), condition.failingLanes()];
  return (
    condition.isPaused(name) ||
    lists.flat().some(({ pipeline }) => pipeline === name) ||
    condition.failedChores().some(({ pipeline }) => pipeline === name) ||
    condition.openCircuits().some(({ destination }) => name.endsWith(`->${destination}`))
  );
}
