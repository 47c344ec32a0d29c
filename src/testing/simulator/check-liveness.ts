import { laneOf } from "../../sources/memory/memory-lanes.ts";
import type { MemoryEventRow, MemoryHoldRow } from "../../sources/memory/memory-tables.ts";
import { destinationOf, lineOf } from "./check-delivery.ts";
import { isBrakeTight, routeOf } from "./check-failures.ts";
import { blocksLane } from "./check-health.ts";
import { mayStandStill } from "./check-transactions.ts";
import type { Written } from "./history.ts";
import type { Simulation } from "./simulation.ts";

/** All events are delivered or dead, except those that wait behind a dead or endlessly failing event of their key. */
export function isDrained(simulation: Simulation): boolean {
  return waitingWithoutCause(simulation) === undefined;
}

function waitingWithoutCause(simulation: Simulation): MemoryEventRow | undefined {
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

/** A lane with so many undeliverable events reads no new ones until an operator resolves them. */
function isBraked(
  { scenario }: Simulation,
  row: MemoryEventRow,
  holds: readonly MemoryHoldRow[],
  endlessIds: ReadonlySet<string>,
): boolean {
  const lane = laneOf(row, scenario.lanes);
  const hopeless = holds.filter(
    (hold) => hold.lane === lane && blocksLane(hold) && (hold.state === "dead" || endlessIds.has(hold.id)),
  );
  return hopeless.length >= (scenario.limits.holdsPerLaneMax ?? 0);
}

/**
 * With `block` an event that always fails is retried forever. So is an unanswered event if no other event is left to show
 * that the destination works, and an event that keeps the brake on if no other event is left to release it.
 */
export function isEndless(simulation: Simulation, event: Written): boolean {
  if (event.fate.kind === "silent" || isRefusedForOthers(simulation, event)) return true;
  const isPoison = event.fate.kind === "poison";
  if (isBrakeTight(simulation)) return isPoison || event.fate.kind === "rejected";
  return isPoison && routeOf(simulation, event).onExhausted === "block";
}

/** Refused with the scope of topic or destination: only deliveries of other events disprove that, if there are enough. */
function isRefusedForOthers(simulation: Simulation, event: Written): boolean {
  const { onlyKey } = simulation.scenario;
  if (event.fate.kind === "misjudged") return true;
  return onlyKey !== null && onlyKey.key !== event.key && onlyKey.destination === destinationOf(simulation, event.type);
}

/** After the faults everything is delivered, and then the processes are idle. */
export function checkLiveness(simulation: Simulation): void {
  const { history } = simulation.world;
  const waiting = waitingWithoutCause(simulation);
  if (simulation.drainedAtMs === null && history.violations.length === 0) {
    history.violate(
      "liveness",
      waiting === undefined ? "a writer is still blocked" : describeWaiting(simulation, waiting),
    );
  }
  const bound = idleCallsMax(simulation);
  if (simulation.idleCallsPerSecond > bound) {
    history.violate("hot loop", `${simulation.idleCallsPerSecond.toFixed(0)} calls per second while idle`);
  }
  const perSecond = simulation.outageRequestsPerSecond;
  if (perSecond > outageRequestsMax(simulation)) {
    history.violate("hot loop", `${perSecond.toFixed(1)} requests per second to a destination that is down`);
  }
  const stuck = simulation.slots.filter((slot) => slot.stuckStops > 0).length;
  if (stuck > 0) history.violate("stop", "a graceful stop did not finish");
}

function describeWaiting({ scenario, world }: Simulation, row: MemoryEventRow): string {
  const lane = laneOf(row, scenario.lanes);
  const { pipelines } = world.database.model.tables;
  const holds = [...pipelines.values()].flatMap((pipeline) => [...pipeline.holds.values()]);
  const inLane = holds.filter((hold) => hold.lane === lane).map(({ id, state }) => `${id} ${state}`);
  return `${row.id} of ${row.key} in lane ${lane} still waits (${row.state}); holds: ${inLane.join(", ") || "none"}`;
}

function idleCallsMax(simulation: Simulation): number {
  const { scenario, slots, world } = simulation;
  const { pollIntervalMs, balanceMs, leaseMs } = scenario.timing;
  const perSecond = (everyMs: number): number => 1_000 / everyMs;
  const perPipeline = 4 * perSecond(pollIntervalMs) + 2 * perSecond(balanceMs) + 5;
  const perProcess = scenario.routes.length * perPipeline + perSecond(balanceMs) + 3 * perSecond(leaseMs) + 5;
  const { pipelines, open } = world.database.model.tables;
  const holds = [...pipelines.values()].reduce((sum, pipeline) => sum + pipeline.holds.size, 0);
  // Every run reads the followers of an event that is retried forever, in pages of possibly one event.
  // Claims are renewed, and stale claims searched for, eight times per lease.
  const ofClaims = scenario.durableClaims ? scenario.routes.length * 16 * perSecond(scenario.claimLeaseMs) : 0;
  // A lane that waits for an operator is polled repeatedly.
  const halted = [...pipelines].flatMap(([name, { lanes }]) =>
    [...lanes.values()].filter((lane) => mayStandStill(simulation, name, lane)),
  );
  const ofHalted = halted.length * 10 * perSecond(scenario.timing.backoffMaxMs);
  return slots.length * (perProcess + ofClaims + ofHalted) + 10 * holds + 2 * open.size * perSecond(pollIntervalMs);
}

/** Each process sends one probe per longest circuit pause; fencing a lane for it takes a few requests. */
function outageRequestsMax({ scenario, slots }: Simulation): number {
  return slots.length * 4 * (1_000 / scenario.timing.circuitMaxMs);
}

/** S: if only single events, keys and topics fail, all others arrive soon. */
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
    if (delayMs > boundMs)
      history.violate("S", `${id} of ${key} waited ${delayMs.toFixed(0)} ms because of other events`);
  }
}

function sharesBadTopic({ scenario }: Simulation): boolean {
  return scenario.rates["topic down"] !== undefined || scenario.rates["retry topic"] !== undefined;
}

/** Faults of the table, the database or a destination as a whole: everything waits for their end and the review after it. */
const COMMON_KINDS: readonly string[] = [
  ...["column missing", "maintenance lock", "marks refused"],
  ...["database down", "destination down", "topic down"],
];

/** A first join, some hand-overs of lanes, and a queue in which a slow key has its fair part. */
function flowBoundMs(simulation: Simulation): number {
  const { scenario } = simulation;
  const slowMs = Math.max(0, ...Object.values(scenario.slowKeys));
  const commonMs = scenario.timed
    .filter(({ kind }) => COMMON_KINDS.includes(kind))
    .reduce((sum, { forMs }) => sum + forMs + 2 * scenario.timing.backoffMaxMs + scenario.timing.reviewMs, 0);
  // With so few places in a lane a slow key has them to itself.
  const isTight = scenario.durableClaims && (scenario.limits.batchSize ?? 0) <= 3;
  const slow = isTight
    ? simulation.world.history.written.filter(({ key }) => key !== null && key in scenario.slowKeys)
    : [];
  return 8_000 + 8 * slowMs + slow.length * slowMs + commonMs + probesBoundMs(simulation);
}

/** One probe per line that fails with the destination's scope, each after the longest pause. */
export function probesBoundMs(simulation: Simulation): number {
  const { scenario, world } = simulation;
  const bad = world.history.written.filter((event) => isRefusedForOthers(simulation, event));
  const lines = new Set(bad.map(({ id, key }) => key ?? id)).size;
  const afterMs = Math.max(0, ...bad.map(({ fate }) => (fate.kind === "misjudged" ? (fate.afterMs ?? 0) : 0)));
  return 2 * lines * (1.25 * Math.max(scenario.timing.circuitMaxMs, afterMs) + scenario.timing.pollIntervalMs);
}
