import type { Clock } from "../core/clock.ts";
import type { ErrorCode } from "../core/errors.ts";
import type { Listenable } from "./listenable.ts";

export interface BrokenSource {
  readonly pipeline: string;
  readonly code: ErrorCode;
  readonly reason: string;
}

export interface OpenCircuit {
  readonly destination: string;
  /** Null when the destination as a whole takes nothing. */
  readonly topic: string | null;
  readonly reason: string;
}

/** A lane with so many failed events that it takes nothing new. */
export interface BrakedLane {
  readonly pipeline: string;
  readonly lane: number;
  readonly holds: number;
}

/** What is broken is told again with every try; what has been silent for so long is over. */
const SILENCE_MS = 60_000;

/** What is broken at present, as the technical events tell it. */
export class Condition {
  readonly #clock: Clock;
  readonly #broken = new Map<string, BrokenSource & { readonly toldMs: number }>();
  /** By pipeline and code. */
  readonly #warnings = new Map<string, BrokenSource>();
  readonly #circuits = new Map<string, OpenCircuit>();
  readonly #paused = new Set<string>();
  readonly #limits = new Map<string, number>();
  readonly #lanes = new Map<string, Set<number>>();
  readonly #braked = new Map<string, BrakedLane>();
  readonly #untaken = new Map<string, Set<string>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  listen(events: Listenable): void {
    events.on("SourceBroken", ({ pipeline, code, reason }) =>
      this.#broken.set(pipeline, { pipeline, code, reason, toldMs: this.#clock.monotonicMs() }),
    );
    events.on("SourceRecovered", ({ pipeline }) => this.#broken.delete(pipeline));
    events.on("SourceWarned", ({ pipeline, code, reason }) =>
      this.#warnings.set(JSON.stringify([pipeline, code]), { pipeline, code, reason }),
    );
    events.on("SourceWarningEnded", ({ pipeline, code }) => this.#warnings.delete(JSON.stringify([pipeline, code])));
    // Whoever joins begins everything anew, and tells again what is still broken.
    events.on("InstanceJoined", () => {
      this.#broken.clear();
      this.#warnings.clear();
      this.#paused.clear();
      this.#limits.clear();
      this.#lanes.clear();
      this.#braked.clear();
      this.#untaken.clear();
    });
    events.on("InstanceLost", () => {
      this.#lanes.clear();
      this.#braked.clear();
    });
    events.on("LaneBraked", (lane) => {
      const { holds, lane: number, pipeline } = lane;
      this.#braked.set(laneKey(lane), { pipeline, lane: number, holds });
    });
    events.on("LaneUnbraked", (lane) => this.#braked.delete(laneKey(lane)));
    events.on("LaneTaken", ({ pipeline, lane }) => {
      this.#lanes.set(pipeline, (this.#lanes.get(pipeline) ?? new Set()).add(lane));
    });
    for (const name of ["LaneReleased", "LaneFailed"] as const) {
      events.on(name, ({ pipeline, lane }) => {
        this.#lanes.get(pipeline)?.delete(lane);
        this.#braked.delete(laneKey({ pipeline, lane }));
      });
    }
    events.on("RelayMismatch", ({ pipeline, intentType, recordId }) => {
      if (recordId !== null) return;
      this.#untaken.set(pipeline, (this.#untaken.get(pipeline) ?? new Set()).add(intentType));
    });
    events.on("RelayMatched", ({ pipeline, intentType }) => this.#untaken.get(pipeline)?.delete(intentType));
    events.on("PipelinePaused", ({ pipeline }) => this.#paused.add(pipeline));
    events.on("PipelineResumed", ({ pipeline }) => this.#paused.delete(pipeline));
    events.on("PipelineLimited", ({ perSecond, pipeline }) => {
      if (perSecond === null) this.#limits.delete(pipeline);
      else this.#limits.set(pipeline, perSecond);
    });
    events.on("CircuitOpened", ({ destination, topic, reason }) =>
      this.#circuits.set(circuitKey(destination, topic), { destination, topic, reason }),
    );
    events.on("CircuitClosed", ({ destination, topic }) => this.#circuits.delete(circuitKey(destination, topic)));
  }

  /** An answer disproves that the database cannot be reached, and nothing else. */
  answered(pipeline: string): void {
    if (this.#broken.get(pipeline)?.code === "DATABASE_UNREACHABLE") this.#broken.delete(pipeline);
  }

  brokenSources(): readonly BrokenSource[] {
    const sinceMs = this.#clock.monotonicMs() - SILENCE_MS;
    return [...this.#broken.values()]
      .filter(({ toldMs }) => toldMs >= sinceMs)
      .map(({ pipeline, code, reason }) => ({ pipeline, code, reason }));
  }

  /** Of sources that work, and may still keep events back. */
  warnings(): readonly BrokenSource[] {
    return [...this.#warnings.values()];
  }

  openCircuits(): readonly OpenCircuit[] {
    return [...this.#circuits.values()];
  }

  /** Lanes of this instance that take nothing new. */
  brakedLanes(): readonly BrakedLane[] {
    return [...this.#braked.values()];
  }

  /** Events a second that a person lets through; null without a limit. */
  limitOf(pipeline: string): number | null {
    return this.#limits.get(pipeline) ?? null;
  }

  isPaused(pipeline: string): boolean {
    return this.#paused.has(pipeline);
  }

  /** How many lanes of it this instance owns. */
  lanesOf(pipeline: string): number {
    return this.#lanes.get(pipeline)?.size ?? 0;
  }

  /** How many types of its source nobody takes, where this instance is the one that tells. */
  untakenTypesOf(pipeline: string): number {
    return this.#untaken.get(pipeline)?.size ?? 0;
  }

  /** For a new relay, which knows nothing of the old one's troubles. */
  forget(): void {
    this.#broken.clear();
    this.#warnings.clear();
    this.#circuits.clear();
    this.#paused.clear();
    this.#limits.clear();
    this.#lanes.clear();
    this.#braked.clear();
    this.#untaken.clear();
  }
}

function laneKey({ pipeline, lane }: Pick<BrakedLane, "pipeline" | "lane">): string {
  return JSON.stringify([pipeline, lane]);
}

function circuitKey(destination: string, topic: string | null): string {
  return JSON.stringify([destination, topic]);
}
