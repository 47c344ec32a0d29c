import { delayAfter } from "../../core/retry-policy.ts";
import type { MemoryDeadLetter } from "../../sources/memory/memory-tables.ts";
import { destinationOf } from "./check-delivery.ts";
import type { Send, Written } from "./history.ts";
import type { RoutePlan } from "./scenario.ts";
import type { Simulation } from "./simulation.ts";

/** Tolerance for rounding: the database stores whole milliseconds. */
const SLACK_MS = 2;

/** Attempts: only failures of the event itself are counted, and no more than the policy allows. */
export function checkAttempts(simulation: Simulation): void {
  const { history } = simulation.world;
  const sends = Map.groupBy(history.sends, ({ content }) => content);
  for (const event of history.written) {
    const ofEvent = sends.get(event.content) ?? [];
    const reported = ofEvent.filter(isFailureOfEvent).length;
    const allowed = attemptsMaxOf(routeOf(simulation, event));
    if (routeOf(simulation, event).onExhausted === "block" || isBrakeTight(simulation)) continue;
    if (history.replayed.has(event.content)) continue;
    const disturbed = history.disturbances.filter(
      ({ process }) => process === null || ofEvent.some((send) => send.process === process),
    ).length;
    // A failover may lose all attempts of an event, and its dead letter.
    const lives = 1 + (simulation.world.faults.fired.get("failover") ?? 0);
    if (reported > lives * allowed + disturbed) {
      history.violate("attempts", `${event.id} failed ${reported} times, but only ${allowed} attempts are allowed`);
    }
  }
}

/** With durable claims a crash counts an attempt only for events that the process had sent. */
export function checkClaimedAttempts(simulation: Simulation): void {
  const { history, database } = simulation.world;
  if (!simulation.scenario.durableClaims) return;
  const { open, closed } = database.model.tables;
  const sends = Map.groupBy(history.sends, ({ content }) => content);
  // A process may be paused or stopped between the decision to send and the send.
  const stopped = history.disturbances.filter(({ what }) => what !== "crash").length + endsAmidPublishes(simulation);
  for (const { id, attempts, payload } of [...open.values(), ...closed.values()]) {
    const fate = history.written.find((written) => written.id === id)?.fate.kind;
    // An event that crashes the process before the send was about to be sent.
    if (fate === "crash") continue;
    const sent = sends.get(payload.toString("latin1"))?.length ?? 0;
    const unsent = fate === "unreadable" || fate === "too large" ? 1 : 0;
    if (attempts > sent + stopped + unsent) {
      history.violate("attempts", `${id} has ${attempts} attempts but was sent ${sent} times`);
    }
  }
}

/** Crashes between recording the events to send and sending all of them. */
function endsAmidPublishes({ world }: Simulation): number {
  const kinds = ["crash poison", "crash before publish", "crash amid publish"] as const;
  const inTransactions = ["crash before transaction", "crash amid transaction"] as const;
  return [...kinds, ...inTransactions].reduce((sum, kind) => sum + (world.faults.fired.get(kind) ?? 0), 0);
}

/** A retry must not come before the time that the policy or the destination set at the last failure. */
export function checkDelays(simulation: Simulation): void {
  const { history, leaseMs } = simulation.world;
  if (isBrakeTight(simulation)) return;
  const written = new Map(history.written.map((event) => [event.content, event]));
  for (const [content, ofEvent] of Map.groupBy(history.sends, (send) => send.content)) {
    const event = written.get(content);
    if (event === undefined || ofEvent.some(({ answer }) => answer === null) || history.replayed.has(content)) continue;
    let failures = 0;
    for (const [index, send] of ofEvent.entries()) {
      if (!isFailureOfEvent(send)) continue;
      failures += 1;
      const next = ofEvent[index + 1];
      if (next === undefined || isDisturbed(simulation, ofEvent[0]!.sentAtMs - 2 * leaseMs, next.sentAtMs)) break;
      // With durable claims crashes count as attempts too, so the number of this failure is unknown.
      const policyMs = simulation.scenario.durableClaims ? 0 : policyDelayMs(routeOf(simulation, event), failures);
      const leastMs = Math.max(policyMs, send.answer!.afterMs);
      const waitedMs = next.sentAtMs - send.answer!.atMs;
      if (waitedMs + SLACK_MS < leastMs) {
        history.violate("delay", `${event.id} was retried after ${waitedMs.toFixed(1)} ms instead of ${leastMs} ms`);
      }
    }
  }
}

/** Dead letters: exactly the events that used up their attempts, each with its own errors only. */
export function checkDeadLetters(simulation: Simulation): void {
  const { history, database } = simulation.world;
  for (const letter of database.model.tables.deadLetters.values()) {
    const content = letter.event.payload.toString("latin1");
    const event = history.written.find((written) => written.content === content);
    if (event === undefined || event.gone !== null) continue;
    // Errors are recorded even if they do not count as an attempt. With durable claims crashes count too, so only the last
    // error is certain to have counted.
    const counted = letter.errors.filter(({ attempt }, index) =>
      simulation.scenario.durableClaims
        ? index === letter.errors.length - 1
        : attempt > (letter.errors[index - 1]?.attempt ?? 0),
    );
    // For an event that is always refused with the scope of its topic or destination, a real outage looks the same.
    const own = event.fate.kind === "misjudged" ? [...OWN_REASONS, /^(?:destination|topic): /] : OWN_REASONS;
    const strange = counted.find(({ reason }) => !own.some((pattern) => pattern.test(reason)));
    if (strange !== undefined) {
      history.violate("dead letter", `${event.id} is dead because of an error that is not its own: ${strange.reason}`);
    }
    const foreign = letter.errors.find(
      ({ reason }) => /^event: (\S+) /.exec(reason)?.[1] !== event.id && /^event: /.test(reason),
    );
    if (foreign !== undefined)
      history.violate("dead letter", `${event.id} has an error of another event: ${foreign.reason}`);
    // A missing answer that is not attributed to the event leaves an error but counts no attempt.
    const reported = new Set(letter.errors.filter(({ attempt }) => attempt > 0).map(({ attempt }) => attempt)).size;
    const mayLack = simulation.scenario.durableClaims || simulation.scenario.rates.failover !== undefined;
    if (!mayLack && reported !== letter.attempts) {
      history.violate("dead letter", `${event.id} has ${letter.attempts} attempts but errors of ${reported}`);
    }
    checkParks(simulation, event, letter);
    if (!deserves(simulation, event, letter)) {
      history.violate("dead letter", `${event.id} is dead too early: ${letter.errors.at(-1)?.reason}`);
    }
  }
}

/** An event that crashed the process, or was in flight at several crashes, is not subject to its route's onExhausted. */
function checkParks(simulation: Simulation, event: Written, letter: MemoryDeadLetter): void {
  if (CRASHED.test(letter.errors.at(-1)?.reason ?? "")) return;
  const parks = routeOf(simulation, event).onExhausted !== "skip";
  if (letter.parks === parks) return;
  simulation.world.history.violate("dead letter", `${event.id} ${parks ? "does not park" : "parks"} its key`);
}

/** So many failures with the scope of topic or destination are needed before one counts against the event. */
const SHARED_FAILURES_MIN = 3;
const SILENT = /gave no answer to transactions/;
const CRASHED = /CRASH_POISON|^The relay that was sending/;
const OWN_REASONS = [
  /^event: /,
  // Random topic and destination errors can repeatedly hit this event while others are delivered.
  /^(?:destination|topic): busy/,
  /PUBLISH_UNKNOWN/,
  /CRASH_POISON/,
  / is no event/,
  /^The payload has/,
  /^The relay that was sending/,
];

function deserves(simulation: Simulation, event: Written, letter: MemoryDeadLetter): boolean {
  const { history } = simulation.world;
  const ofEvent = history.sends.filter(({ content }) => content === event.content);
  if (["unreadable", "too large", "crash"].includes(event.fate.kind)) return true;
  if (ofEvent.some(({ answer }) => answer?.kind === "rejected")) return true;
  const reason = letter.errors.at(-1)?.reason ?? "";
  // An event that was in flight at so many crashes cannot be distinguished from the one that caused them.
  if (CRASHED.test(reason)) return history.disturbances.length > 0;
  // A transaction whose connection was lost may not have sent the message at all.
  const unsent = history.disturbances.filter(({ what }) => what === "send failed");
  const unanswered = SILENT.test(reason) ? unsent.length : 0;
  const misjudged = ofEvent.filter(isSharedFailure).length - SHARED_FAILURES_MIN;
  const failures =
    ofEvent.filter((send) => isFailureOfEvent(send) || send.answer === null).length +
    unanswered +
    Math.max(0, misjudged);
  const reaps = simulation.scenario.durableClaims ? history.disturbances.length : 0;
  const route = routeOf(simulation, event);
  return route.onExhausted !== "block" && failures + reaps >= attemptsMaxOf(route);
}

function policyDelayMs({ retry }: RoutePlan, failures: number): number {
  const delayMs = delayAfter(retry, failures, 0);
  return delayMs === "exhausted" ? 0 : delayMs;
}

function attemptsMaxOf({ retry }: RoutePlan): number {
  return retry.kind === "schedule" ? retry.delaysMs.length + 1 : retry.attemptsMax;
}

function isFailureOfEvent({ answer }: Send): boolean {
  return answer?.kind === "retry event" || answer?.kind === "rejected";
}

function isSharedFailure({ answer }: Send): boolean {
  return (answer?.kind === "retry topic" || answer?.kind === "retry destination") && !/ down$/.test(answer.reason);
}

function isDisturbed(simulation: Simulation, fromMs: number, untilMs: number): boolean {
  return simulation.world.history.disturbances.some(({ atMs }) => atMs >= fromMs && atMs <= untilMs);
}

/** A failed probe of the brake is retried and does not count against the event. */
export function isBrakeTight(simulation: Simulation): boolean {
  return (simulation.scenario.limits.failuresInRowMax ?? 100) < 100;
}

export function routeOf(simulation: Simulation, { type }: Written): RoutePlan {
  const destination = destinationOf(simulation, type);
  return simulation.scenario.routes.find((route) => route.destination === destination)!;
}
