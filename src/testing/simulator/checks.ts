import { checkDuplicates, checkLoss, checkOrder } from "./check-delivery.ts";
import { checkAttempts, checkClaimedAttempts, checkDeadLetters, checkDelays } from "./check-failures.ts";
import { checkBraked } from "./check-health.ts";
import { checkClaims, checkLanes, checkShare } from "./check-lanes.ts";
import { checkFlow, checkLiveness } from "./check-liveness.ts";
import { checkExactlyOnce } from "./check-transactions.ts";
import type { Simulation } from "./simulation.ts";

/** The invariants by their names in reports. */
export const INVARIANTS: Readonly<Record<string, string>> = {
  L: "no loss: every committed event is delivered, is a dead letter, or waits behind one",
  O: "order: first deliveries of a key follow the order of writing",
  D: "duplicates only after an unknown outcome or a fault, one for each",
  X: "exactly once: a destination with transactions shows no event twice, and none that its ledger does not name",
  R: "no event of a key is sent while another publish of the key is unanswered, so that events cannot be reordered",
  S: "separation: failing events, keys and topics do not delay the others",
  attempts: "failures of the event itself are at most as many as its policy allows",
  delay: "no retry before its time",
  "dead letter": "exactly the events that used up their attempts are dead, each with the error of every attempt",
  health: "a process in which nothing is delivered does not report healthy",
  lease: "no publishes after the lease has expired",
  share: "living instances share the lanes evenly, and all lanes are owned",
  lanes: "epochs rise, and only one instance writes under an epoch",
  claims: "a durable claim is locked exactly while it is being delivered",
  liveness: "after the faults everything is delivered",
  "hot loop": "an idle process makes few calls",
  stop: "a graceful stop finishes",
  leak: "a stopped process leaves no open runs",
  crash: "the engine has no unhandled errors",
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
