import type { Clock, Random } from "../core/clock.ts";
import type { Limits, Timing } from "../core/limits.ts";
import type { AttemptRecorder } from "../ports/attempt-recorder.ts";
import type { QueueStore } from "../ports/queue-store.ts";
import type { TechnicalEvents } from "../ports/technical-events.ts";
import type { Routes } from "../routing/routes.ts";
import type { ByteBudget } from "./byte-budget.ts";
import type { Destination } from "./destination.ts";

/** The dependencies that all parts of a pipeline share. */
export interface PipelineContext {
  readonly name: string;
  readonly store: QueueStore;
  readonly destination: Destination;
  readonly routes: Routes;
  readonly limits: Limits;
  /** Shared by all pipelines of the process. */
  readonly budget: ByteBudget;
  readonly timing: Timing;
  readonly clock: Clock;
  readonly random: Random;
  readonly events: TechnicalEvents;
  /** Records attempts for people; null where attempts are not recorded. */
  readonly recorder: AttemptRecorder | null;
}
