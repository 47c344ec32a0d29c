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
  /** Called when lanes have become free. */
  readonly onReaped: () => void;
}

/**
 * Removes instances whose lease expired. Their lanes are then free, and the next owner resolves at the take-over what
 * they left in flight. Claims that other relays left in an Open Outbox table are freed by a chore of the pipeline.
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
