import type { InFlightSet } from "../core/in-flight.ts";
import type { Lane } from "./lane.ts";
import type { RateGate } from "./rate-gate.ts";
import type { Silences } from "./silences.ts";

/** What a lane needs of the pipeline it belongs to. */
export interface LaneHost {
  readonly inFlight: InFlightSet;
  /** The open run must show no later event of this key any more. */
  passOver(key: string | null): void;

  /** Something may be there to be read that no run has shown. */
  expectEvents(): void;
  /** There may be room, a due hold or a released key. */
  wake(): void;
  /** True while the instance's lease lasts. */
  isAlive(): boolean;
  /** Events that one lane may have in flight. */
  laneShare(): number;
  /** Resolves when the open run is between two pages. */
  betweenPages(): Promise<void>;
  readonly silences: Silences;
  /** What a person lets through, of all lanes together. */
  readonly limit: RateGate;
  /** The first run whose snapshot is younger than now. */
  nextRun(): number;
  /** The lane begins to deliver. */
  opened(lane: Lane): void;
  /** A write of the lane succeeded. */
  settled(lane: Lane): void;
  /** The source refuses the lane's writes for now. */
  refused(lane: Lane, error: unknown): void;
  /** Rows of the lane cannot be marked, or (null) all of them are marked by now. */
  unmarked(lane: number, error: unknown): void;
  lost(lane: Lane, error: unknown): void;
}
