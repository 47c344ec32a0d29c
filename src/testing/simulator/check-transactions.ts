import type { MemoryLaneRow } from "../../sources/memory/memory-tables.ts";
import type { Simulation } from "./simulation.ts";

/**
 * X: a destination with transactions never shows an event twice. The only exception is an operator who replays a dead letter
 * after a failover lost the record of its delivery.
 */
export function checkExactlyOnce(simulation: Simulation): void {
  const { history } = simulation.world;
  const names = new Set(simulation.brokers.filter(({ transactions }) => transactions !== null).map(nameOf));
  const seen = new Map<string, string>();
  for (const { content, id, destination, process } of history.arrivals) {
    if (!names.has(destination)) continue;
    const before = seen.get(content);
    seen.set(content, process);
    const mayRepeat = history.replayed.has(content) && simulation.scenario.rates.failover !== undefined;
    if (before === undefined || mayRepeat) continue;
    history.violate("X", `${id} (${content}) became visible by ${before} and again by ${process}`);
  }
}

/**
 * After a failover that lost more settles than the ledger holds, no one knows what was delivered: the lane stops until an
 * operator decides.
 */
export function mayStandStill(simulation: Simulation, pipeline: string, lane: MemoryLaneRow | undefined): boolean {
  const { brokers, world } = simulation;
  const broker = brokers.find((it) => pipeline.endsWith(`->${nameOf(it)}`));
  const name = `${pipeline} ${lane?.lane}`;
  const last = broker?.lastBatches.get(name);
  if (last === undefined || lane === undefined) return false;
  const hasForgotten = (world.history.settledBatches.get(name) ?? 0n) > lane.settledBatch;
  return hasForgotten && last - lane.settledBatch > BigInt(broker?.transactions?.ringSize ?? 0);
}

function nameOf({ options }: Simulation["brokers"][number]): string {
  return options.name;
}
