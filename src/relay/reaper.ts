import type { Clock } from "../core/clock.ts";
import type { Timing } from "../core/limits.ts";
import type { Membership } from "../ports/membership.ts";
import type { TechnicalEvents } from "../ports/technical-events.ts";
import { Chore } from "./chores/chore.ts";

interface ReaperOptions {
  readonly membership: Membership;
  readonly timing: Timing;
  readonly clock: Clock;
  readonly events: TechnicalEvents;
  /** Lanes have become free. */
  readonly onReaped: () => void;
}

/**
 * Finds instances that died and takes them off the list; their lanes are then free and are taken over, and what they
 * left behind is resolved at the take-over. Claims that foreign relays left in a table are freed by a chore.
 */
export function createReaper(options: ReaperOptions): Chore {
  const { clock, events, membership, onReaped, timing } = options;
  return new Chore({
    name: "reap instances",
    pipeline: "",
    everyMs: timing.balanceMs,
    clock,
    events,
    run: async () => {
      const reaped = await membership.reap();
      for (const instance of reaped) events.emit("InstanceReaped", { instance });
      if (reaped.length > 0) onReaped();
    },
  });
}
