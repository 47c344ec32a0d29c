import { delayAfter } from "../../core/retry-policy.ts";
import type { DeadLetter } from "../../sources/memory/memory-tables.ts";
import { destinationOf } from "./check-delivery.ts";
import type { Send, Written } from "./history.ts";
import type { RoutePlan } from "./scenario.ts";
import type { Simulation } from "./simulation.ts";

/** Sums of fractions and a database that counts whole milliseconds. */
const SLACK_MS = 2;

/** Attempts: only failures of the event itself are counted, no more of them than the policy allows. */
export function checkAttempts(simulation: Simulation): void {
  const { history } = simulation.world;
  const sends = Map.groupBy(history.sends, ({ content }) => content);
  for (const event of history.written) {
    const ofEvent = sends.get(event.content) ?? [];
    const told = ofEvent.filter(isFailureOfEvent).length;
    const allowed = attemptsMaxOf(routeOf(simulation, event));
    if (routeOf(simulation, event).onExhausted === "block" || isBrakeTight(simulation)) continue;
    if (history.replayed.has(event.content)) continue;
    const disturbed = history.disturbances.filter(
      ({ process }) => process === null || ofEvent.some((send) => send.process === process),
    ).length;
    // A failover may forget every attempt of an event, its death included.
    const lives = 1 + (simulation.world.faults.fired.get("failover") ?? 0);
    if (told > lives * allowed + disturbed) {
      history.violate("attempts", `${event.id} failed ${told} times, ${allowed} are allowed`);
    }
  }
}

/** Where claims are durable: the end of a process spends attempts of those events alone that it had sent. */
export function checkClaimedAttempts(simulation: Simulation): void {
  const { history, database } = simulation.world;
  if (!simulation.scenario.durableClaims) return;
  const { open, closed } = database.model.tables;
  const sends = Map.groupBy(history.sends, ({ content }) => content);
  // A process may stand still, or be stopped, between the decision to send and the sending.
  const stopped = history.disturbances.filter(({ what }) => what !== "crash").length + endsAmidPublishes(simulation);
  for (const { id, attempts, payload } of [...open.values(), ...closed.values()]) {
    const fate = history.written.find((written) => written.id === id)?.fate.kind;
    // What ends the process before it is sent was about to be.
    if (fate === "crash") continue;
    const sent = sends.get(payload.toString("latin1"))?.length ?? 0;
    const unsent = fate === "unreadable" || fate === "too large" ? 1 : 0;
    if (attempts > sent + stopped + unsent) {
      history.violate("attempts", `${id} has ${attempts}, and was sent ${sent} times`);
    }
  }
}

/** Crashes between the note of what is about to be sent and the sending of all of it. */
function endsAmidPublishes({ world }: Simulation): number {
  const kinds = ["crash poison", "crash before publish", "crash amid publish"] as const;
  const inTransactions = ["crash before transaction", "crash amid transaction"] as const;
  return [...kinds, ...inTransactions].reduce((sum, kind) => sum + (world.faults.fired.get(kind) ?? 0), 0);
}

/** A try is not earlier than the policy, or the destination, said at the failure before it. */
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
      // Where claims are durable the ends of processes are counted as well, so the number of this failure is not known.
      const policyMs = simulation.scenario.durableClaims ? 0 : policyDelayMs(routeOf(simulation, event), failures);
      const leastMs = Math.max(policyMs, send.answer!.afterMs);
      const waitedMs = next.sentAtMs - send.answer!.atMs;
      if (waitedMs + SLACK_MS < leastMs) {
        history.violate("delay", `${event.id} was tried again after ${waitedMs.toFixed(1)} ms instead of ${leastMs}`);
      }
    }
  }
}

/** Dead letters: exactly the events that deserve it, each with its own errors and no others. */
export function checkDeadLetters(simulation: Simulation): void {
  const { history, database } = simulation.world;
  for (const letter of database.model.tables.deadLetters.values()) {
    const content = letter.event.payload.toString("latin1");
    const event = history.written.find((written) => written.content === content);
    if (event === undefined || event.gone !== null) continue;
    // What is not held against an event leaves an error all the same. Where claims are durable the ends of processes
    // count too, so that only the last error is sure to have counted.
    const counted = letter.errors.filter(({ attempt }, index) =>
      simulation.scenario.durableClaims
        ? index === letter.errors.length - 1
        : attempt > (letter.errors[index - 1]?.attempt ?? 0),
    );
    // Of an event that is always refused as if its topic or destination were down, a real outage is no other answer.
    const own = event.fate.kind === "misjudged" ? [...OWN_REASONS, /^(?:destination|topic): /] : OWN_REASONS;
    const strange = counted.find(({ reason }) => !own.some((pattern) => pattern.test(reason)));
    if (strange !== undefined) {
      history.violate("dead letter", `${event.id} died of something that is not its own: ${strange.reason}`);
    }
    const foreign = letter.errors.find(
      ({ reason }) => /^event: (\S+) /.exec(reason)?.[1] !== event.id && /^event: /.test(reason),
    );
    if (foreign !== undefined) history.violate("dead letter", `${event.id} has an error of another: ${foreign.reason}`);
    // Silence that is not held against the event leaves an error and spends no attempt.
    const told = new Set(letter.errors.filter(({ attempt }) => attempt > 0).map(({ attempt }) => attempt)).size;
    const mayLack = simulation.scenario.durableClaims || simulation.scenario.rates.failover !== undefined;
    if (!mayLack && told !== letter.attempts) {
      history.violate("dead letter", `${event.id} has ${letter.attempts} attempts and the errors of ${told}`);
    }
    checkParks(simulation, event, letter);
    if (!deserves(simulation, event, letter)) {
      history.violate("dead letter", `${event.id} is dead for no reason: ${letter.errors.at(-1)?.reason}`);
    }
  }
}

/** What ends the process, or was in flight at many ends of it, dies by another rule than that of its route. */
function checkParks(simulation: Simulation, event: Written, letter: DeadLetter): void {
  if (CRASHED.test(letter.errors.at(-1)?.reason ?? "")) return;
  const parks = routeOf(simulation, event).onExhausted !== "skip";
  if (letter.parks === parks) return;
  simulation.world.history.violate("dead letter", `${event.id} ${parks ? "does not park" : "parks"} its key`);
}

/** So often an event fails with the topic or the destination before that is held against it. */
const SHARED_FAILURES_MIN = 3;
const SILENT = /gave no answer to transactions/;
const CRASHED = /CRASH_POISON|^The relay that was sending/;
const OWN_REASONS = [
  /^event: /,
  // Said by chance of this event, again and again, while others got through.
  /^(?:destination|topic): busy/,
  /PUBLISH_UNKNOWN/,
  /CRASH_POISON/,
  / is no event/,
  /^The payload has/,
  /^The relay that was sending/,
];

function deserves(simulation: Simulation, event: Written, letter: DeadLetter): boolean {
  const { history } = simulation.world;
  const ofEvent = history.sends.filter(({ content }) => content === event.content);
  if (["unreadable", "too large", "crash"].includes(event.fate.kind)) return true;
  if (ofEvent.some(({ answer }) => answer?.kind === "rejected")) return true;
  const reason = letter.errors.at(-1)?.reason ?? "";
  // Whoever happened to be in flight at so many crashes cannot be told from the culprit.
  if (CRASHED.test(reason)) return history.disturbances.length > 0;
  // A transaction that loses its connection may not even have sent the message.
  const unsent = history.disturbances.filter(({ what }) => what === "send failed");
  const silences = SILENT.test(reason) ? unsent.length : 0;
  const misjudged = ofEvent.filter(isSharedFailure).length - SHARED_FAILURES_MIN;
  const failures =
    ofEvent.filter((send) => isFailureOfEvent(send) || send.answer === null).length + silences + Math.max(0, misjudged);
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

/** A probe of the brake is sent again without its failure being held against the event. */
export function isBrakeTight(simulation: Simulation): boolean {
  return (simulation.scenario.limits.failuresInRowMax ?? 100) < 100;
}

export function routeOf(simulation: Simulation, { type }: Written): RoutePlan {
  const destination = destinationOf(simulation, type);
  return simulation.scenario.routes.find((route) => route.destination === destination)!;
}
