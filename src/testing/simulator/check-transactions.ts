import type { LaneRow } from "../../sources/memory/memory-tables.ts";
import type { Simulation } from "./simulation.ts";

/**
 * X: a destination with transactions shows no event twice, whatever happened. Only a person can ask for that: who puts
 * a dead letter back that the database had forgotten to be delivered since.
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
 * A failover that forgot more settles than the ledger reaches back leaves nobody who knows what was delivered: then
 * the lane stands still until a person decides.
 */
export function mayStandStill(simulation: Simulation, pipeline: string, lane: LaneRow | undefined): boolean {
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
