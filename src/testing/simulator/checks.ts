import { checkDuplicates, checkLoss, checkOrder } from "./check-delivery.ts";
import { checkAttempts, checkClaimedAttempts, checkDeadLetters, checkDelays } from "./check-failures.ts";
import { checkBraked } from "./check-health.ts";
import { checkClaims, checkLanes, checkShare } from "./check-lanes.ts";
import { checkFlow, checkLiveness } from "./check-liveness.ts";
import { checkExactlyOnce } from "./check-transactions.ts";
import type { Simulation } from "./simulation.ts";

/** What each name in a report stands for. */
export const INVARIANTS: Readonly<Record<string, string>> = {
  L: "no loss: every committed event is delivered, or visibly dead or waiting behind a dead one",
  O: "order: first deliveries of one key follow the order of writing",
  D: "duplicates only where an outcome was unknown or something went wrong, once for each",
  X: "exactly once: a destination with transactions shows no event twice, and none that its ledger does not name",
  R: "no event of a key is sent while another publish of the key is unanswered, so that nothing can step back",
  S: "separation: bad events, keys and topics do not hold up the others",
  attempts: "an event fails for its own sake at most as often as its policy allows",
  delay: "no try before its time",
  "dead letter": "exactly the events that deserve it are dead, each with the error of every attempt",
  health: "no state in which nothing moves is called healthy",
  lease: "nothing is published once the lease has ended",
  share: "living instances share the lanes fairly, and all lanes are owned",
  lanes: "epochs rise, and only one instance ever writes under one",
  claims: "a durable claim is locked exactly while it is being delivered",
  liveness: "when the faults are over, everything flows again",
  "hot loop": "waiting costs next to nothing",
  stop: "a graceful stop comes to its end",
  leak: "a stopped process leaves nothing open",
  crash: "the engine never throws where nobody catches",
};

export function checkAll(simulation: Simulation): void {
  checkLiveness(simulation);
  checkLoss(simulation);
  checkOrder(simulation);
  checkDuplicates(simulation);
  checkExactlyOnce(simulation);
  checkAttempts(simulation);
  checkClaimedAttempts(simulation);
  checkDelays(simulation);
  checkDeadLetters(simulation);
  checkLanes(simulation);
  checkShare(simulation);
  checkClaims(simulation);
  checkFlow(simulation);
  checkBraked(simulation);
}
