import { laneOf } from "../../sources/memory/memory-lanes.ts";
import type { EventRow, HoldRow } from "../../sources/memory/memory-tables.ts";
import { destinationOf, lineOf } from "./check-delivery.ts";
import { isBrakeTight, routeOf } from "./check-failures.ts";
import { isBurden } from "./check-health.ts";
import { mayStandStill } from "./check-transactions.ts";
import type { Written } from "./history.ts";
import type { Simulation } from "./simulation.ts";

/** All is delivered or dead, but for what must wait: a key behind a dead or an endlessly failing event. */
export function isDrained(simulation: Simulation): boolean {
  return waitingWithoutCause(simulation) === undefined;
}

function waitingWithoutCause(simulation: Simulation): EventRow | undefined {
  const { scenario, world } = simulation;
  const { database, history } = world;
  const { open, pipelines } = database.model.tables;
  if (open.size === 0) return undefined;
  const endless = history.written.filter((event) => open.has(event.id) && isEndless(simulation, event));
  const endlessIds = new Set(endless.map(({ id }) => id));
  const endlessLines = new Set(endless.filter(({ key }) => key !== null).map((event) => lineOf(simulation, event)));
  for (const row of open.values()) {
    const name = `outbox->${destinationOf(simulation, row.type)}`;
    const pipeline = pipelines.get(name);
    if (mayStandStill(simulation, name, pipeline?.lanes.get(laneOf(row, scenario.lanes)))) continue;
    const holds = pipeline === undefined ? [] : [...pipeline.holds.values()];
    const isParked = holds.some(({ key, parks, state }) => parks && state === "dead" && key === row.key);
    const isBehind = endlessIds.has(row.id) || endlessLines.has(lineOf(simulation, row));
    if (!isParked && !isBehind && !isBraked(simulation, row, holds, endlessIds)) return row;
  }
  return undefined;
}

/** A lane with that many events that nobody can deliver takes nothing new until a person looks at them. */
function isBraked(
  { scenario }: Simulation,
  row: EventRow,
  holds: readonly HoldRow[],
  endlessIds: ReadonlySet<string>,
): boolean {
  const lane = laneOf(row, scenario.lanes);
  const hopeless = holds.filter(
    (hold) => hold.lane === lane && isBurden(hold) && (hold.state === "dead" || endlessIds.has(hold.id)),
  );
  return hopeless.length >= (scenario.limits.holdsPerLaneMax ?? 0);
}

/**
 * With `block` an event that always fails is tried for ever. So is one that is never answered when nothing else is
 * left to tell it from a dead destination, and one that holds the brake on when nothing else is left to release it.
 */
function isEndless(simulation: Simulation, event: Written): boolean {
  if (event.fate.kind === "silent" || isRefusedForOthers(simulation, event)) return true;
  const isPoison = event.fate.kind === "poison";
  if (isBrakeTight(simulation)) return isPoison || event.fate.kind === "rejected";
  return isPoison && routeOf(simulation, event).onExhausted === "block";
}

/** Answered as if nothing could be delivered: only what others get through tells, and there may be too few of them. */
function isRefusedForOthers(simulation: Simulation, event: Written): boolean {
  const { onlyKey } = simulation.scenario;
  if (event.fate.kind === "misjudged") return true;
  return onlyKey !== null && onlyKey.key !== event.key && onlyKey.destination === destinationOf(simulation, event.type);
}

/** Once nothing goes wrong any more everything flows again, and then there is peace. */
export function checkLiveness(simulation: Simulation): void {
  const { history } = simulation.world;
  const waiting = waitingWithoutCause(simulation);
  if (simulation.drainedAtMs === null && history.violations.length === 0) {
    history.violate("liveness", waiting === undefined ? "a writer still waits" : describeWaiting(simulation, waiting));
  }
  const bound = idleCallsMax(simulation);
  if (simulation.idleCallsPerSecond > bound) {
    history.violate("hot loop", `${simulation.idleCallsPerSecond.toFixed(0)} calls a second with nothing to do`);
  }
  const perSecond = simulation.outageRequestsPerSecond;
  if (perSecond > outageRequestsMax(simulation)) {
    history.violate("hot loop", `${perSecond.toFixed(1)} requests a second to a destination that is down`);
  }
  const stuck = simulation.slots.filter((slot) => slot.stuckStops > 0).length;
  if (stuck > 0) history.violate("stop", "a graceful stop did not come to its end");
}

function describeWaiting({ scenario, world }: Simulation, row: EventRow): string {
  const lane = laneOf(row, scenario.lanes);
  const { pipelines } = world.database.model.tables;
  const holds = [...pipelines.values()].flatMap((pipeline) => [...pipeline.holds.values()]);
  const inLane = holds.filter((hold) => hold.lane === lane).map(({ id, state }) => `${id} ${state}`);
  return `${row.id} of ${row.key} in lane ${lane} still waits (${row.state}); holds: ${inLane.join(", ") || "none"}`;
}

function idleCallsMax({ scenario, slots, world }: Simulation): number {
  const { pollIntervalMs, balanceMs, leaseMs } = scenario.timing;
  const perSecond = (everyMs: number): number => 1_000 / everyMs;
  const perPipeline = 4 * perSecond(pollIntervalMs) + 2 * perSecond(balanceMs) + 5;
  const perProcess = scenario.routes.length * perPipeline + perSecond(balanceMs) + 3 * perSecond(leaseMs) + 5;
  const { pipelines, open } = world.database.model.tables;
  const holds = [...pipelines.values()].reduce((sum, pipeline) => sum + pipeline.holds.size, 0);
  // Followers of an event that is tried for ever are seen by every run, in pages that may hold a single one.
  // Claims are renewed, and those of dead relays looked for, eight times in their lease.
  const ofClaims = scenario.durableClaims ? scenario.routes.length * 16 * perSecond(scenario.claimLeaseMs) : 0;
  // A lane that stands still for a person is looked at again and again.
  const mayHalt =
    scenario.rates.failover !== undefined && scenario.brokers.some(({ transactions }) => transactions !== null);
  const ofHalted = mayHalt ? scenario.lanes * 10 * perSecond(scenario.timing.backoffMaxMs) : 0;
  return slots.length * (perProcess + ofClaims + ofHalted) + 10 * holds + 2 * open.size * perSecond(pollIntervalMs);
}

/** Each process sends one probe in the circuit's longest pause; to fence a lane for it takes a few requests. */
function outageRequestsMax({ scenario, slots }: Simulation): number {
  return slots.length * 4 * (1_000 / scenario.timing.circuitMaxMs);
}

/** S: where only single events, keys and topics are bad, all others arrive soon. */
export function checkFlow(simulation: Simulation): void {
  const { scenario, world } = simulation;
  const { history } = world;
  if (!scenario.isCalm || scenario.outage !== null) return;
  const badKeys = new Set(history.written.filter(({ fate }) => fate.kind !== "fine").map(({ key }) => key));
  const refused = new Set(
    history.sends
      .filter(({ answer }) => answer?.kind !== "delivered" && answer?.kind !== "skipped")
      .flatMap(({ key, id }) => [key ?? id, id]),
  );
  const firstAtMs = new Map<string, number>();
  for (const { content, atMs } of history.arrivals) if (!firstAtMs.has(content)) firstAtMs.set(content, atMs);
  const boundMs = flowBoundMs(simulation);
  for (const event of history.written) {
    const { id, key, content, committedAtMs } = event;
    if (key !== null && (badKeys.has(key) || refused.has(key) || key in scenario.slowKeys)) continue;
    if (event.fate.kind !== "fine" || refused.has(id) || sharesBadTopic(simulation)) continue;
    if (isRefusedForOthers(simulation, event)) continue;
    const delayMs = (firstAtMs.get(content) ?? Number.POSITIVE_INFINITY) - committedAtMs;
    if (delayMs > boundMs) history.violate("S", `${id} of ${key} waited ${delayMs.toFixed(0)} ms for others`);
  }
}

function sharesBadTopic({ scenario }: Simulation): boolean {
  return scenario.rates["topic down"] !== undefined || scenario.rates["retry topic"] !== undefined;
}

/** A first join, some hand-overs of lanes, and a queue in which a slow key has its fair part. */
function flowBoundMs(simulation: Simulation): number {
  const { scenario } = simulation;
  const slowMs = Math.max(0, ...Object.values(scenario.slowKeys));
  const tableMs = scenario.timed
    .filter(({ kind }) => kind === "column missing" || kind === "maintenance lock")
    .reduce((sum, { forMs }) => sum + forMs + 2 * scenario.timing.backoffMaxMs, 0);
  // With so few places in a lane a slow key has them to itself.
  const isTight = scenario.durableClaims && (scenario.limits.batchSize ?? 0) <= 3;
  const slow = isTight
    ? simulation.world.history.written.filter(({ key }) => key !== null && key in scenario.slowKeys)
    : [];
  return 8_000 + 8 * slowMs + slow.length * slowMs + tableMs + probesBoundMs(simulation);
}

/** As many probes as there are lines that fail as the destination would, each after the longest pause. */
export function probesBoundMs(simulation: Simulation): number {
  const { scenario, world } = simulation;
  const bad = world.history.written.filter((event) => isRefusedForOthers(simulation, event));
  const lines = new Set(bad.map(({ id, key }) => key ?? id)).size;
  const afterMs = Math.max(0, ...bad.map(({ fate }) => (fate.kind === "misjudged" ? (fate.afterMs ?? 0) : 0)));
  return 2 * lines * (1.25 * Math.max(scenario.timing.circuitMaxMs, afterMs) + scenario.timing.pollIntervalMs);
}
