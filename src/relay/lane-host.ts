import type { InFlightSet } from "../core/in-flight.ts";
import type { Lane } from "./lane.ts";
import type { Entry } from "./lane-queue.ts";
import type { RateGate } from "./rate-gate.ts";
import type { UnansweredSends } from "./unanswered-sends.ts";

/** What a lane needs of the session that it belongs to. */
export interface LaneHost {
  readonly inFlight: InFlightSet<Entry>;
  /** The open run must not offer a later event of this key: an earlier one went back to the source. */
  passOver(key: string | null): void;

  /** The source may have events that no run has returned. */
  expectEvents(): void;
  /** There may be room, a due hold or a released key. */
  wake(): void;
  /** True while the instance's lease lasts. */
  isAlive(): boolean;
  /** The number of events that one lane may have in flight. */
  laneShare(): number;
  /** Resolves when the open run is between two pages. */
  betweenPages(): Promise<void>;
  readonly unanswered: UnansweredSends;
  /** The operator's rate limit, for all lanes together. */
  readonly limit: RateGate;
  /** The number of the first run whose snapshot is taken after this call. */
  nextRun(): number;
  /** The lane starts to deliver. */
  opened(lane: Lane): void;
  /** A write of the lane succeeded. */
  settled(lane: Lane): void;
  /** The source refuses the lane's writes; the lane retries them. */
  refused(lane: Lane, error: unknown): void;
  /** Rows of the lane cannot be marked, or (null) all of them are marked now. */
  unmarked(lane: number, error: unknown): void;
  /** The lane is void and must be taken over again. */
  lost(lane: Lane, error: unknown): void;
}
