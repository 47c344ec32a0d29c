import { requestPayout } from "../../../examples/requests/payouts.ts";
import { systemClock } from "../../../src/core/clock.ts";
import { isRelayError } from "../../../src/core/errors.ts";
import type { EventLog } from "../../../src/ports/event-log.ts";
import type { PlannedRequest } from "./plan.ts";

const AGAIN_MS = 100;

/** Gives the commands, spread over this time, each until the event store has it, whatever is killed meanwhile. */
export async function giveCommands(
  log: EventLog,
  requests: readonly PlannedRequest[],
  overMs: number,
  onGiven: () => void,
): Promise<void> {
  const startedMs = performance.now();
  await Promise.all(
    requests.map(async ({ account, id, tenant }, index) => {
      await systemClock.sleep(startedMs + (overMs * index) / requests.length - performance.now());
      await giveOne(log, tenant, { id, account, amount: index + 1 });
      onGiven();
    }),
  );
}

async function giveOne(
  log: EventLog,
  ...command: Parameters<typeof requestPayout> extends [unknown, ...infer Rest] ? Rest : never
) {
  for (let tries = 0; ; tries += 1) {
    try {
      return await requestPayout(log, ...command);
    } catch (error) {
      // Nobody knew whether the former try took effect: it did.
      if (tries > 0 && isRelayError(error, "WRONG_REVISION")) return;
      if (!isRelayError(error, "LOG_UNREACHABLE")) throw error;
      await systemClock.sleep(AGAIN_MS);
    }
  }
}
