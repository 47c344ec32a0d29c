import type { Clock } from "../core/clock.ts";
import type { ErrorCode } from "../core/errors.ts";
import type { Listenable } from "./listenable.ts";

/** `sinceMs` is wall time; absent if unknown. */
interface Lasting {
  readonly sinceMs?: number;
}

/** A source that cannot be read. */
export interface BrokenSource extends Lasting {
  readonly pipeline: string;
  readonly code: ErrorCode;
  readonly reason: string;
}

/** A circuit that is open. */
export interface OpenCircuit extends Lasting {
  readonly destination: string;
  /** Null when the circuit of the whole destination is open. */
  readonly topic: string | null;
  readonly reason: string;
}

/** A lane with so many failed events that it accepts no new ones. */
export interface BrakedLane extends Lasting {
  readonly pipeline: string;
  readonly lane: number;
  readonly holds: number;
}

/** A lane that is lost repeatedly, without a single settle in between. */
export interface FailingLane extends Lasting {
  readonly pipeline: string;
  readonly lane: number;
  readonly reason: string;
}

/** A chore that failed repeatedly. */
export interface FailedChore extends Lasting {
  readonly pipeline: string;
  readonly chore: string;
  readonly reason: string;
}

/** A failure that is reported again each time it happens. */
interface Repeated extends Required<Lasting> {
  readonly times: number;
  /** Monotonic time of the last report. */
  readonly reportedMs: number;
}

/** A broken source is reported with every retry. Without a report for this long, it counts as recovered. */
const SOURCE_EXPIRY_MS = 60_000;
/** The same for lanes and chores, which are retried less often. */
const LANE_EXPIRY_MS = 180_000;
/** One loss is normal: a server restarted. */
const LANE_TIMES = 3;
const CHORE_TIMES = 2;

/** What is broken now, derived from technical events. */
export class Condition {
  readonly #clock: Clock;
  readonly #broken = new Map<string, BrokenSource & Repeated>();
  /** By pipeline and code. */
  readonly #warnings = new Map<string, BrokenSource>();
  readonly #circuits = new Map<string, OpenCircuit>();
  readonly #paused = new Map<string, KnownPause>();
  readonly #limits = new Map<string, number>();
  readonly #lanes = new Map<string, Set<number>>();
  readonly #braked = new Map<string, BrakedLane>();
  readonly #failing = new Map<string, FailingLane & Repeated>();
  readonly #chores = new Map<string, FailedChore & Repeated>();
  /** By pipeline: the unmatched types, each with the time of its report. */
  readonly #unmatched = new Map<string, Map<string, number>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  listen(events: Listenable): void {
    events.on("SourceBroken", ({ pipeline, code, reason, timestamp }) =>
      this.#repeat(this.#broken, pipeline, { pipeline, code, reason }, timestamp, SOURCE_EXPIRY_MS),
    );
    events.on("SourceRecovered", ({ pipeline }) => this.#broken.delete(pipeline));
    events.on("SourceAnswered", ({ pipeline }) => this.answered(pipeline));
    events.on("SourceWarned", ({ pipeline, code, reason, timestamp }) => {
      const key = JSON.stringify([pipeline, code]);
      const sinceMs = this.#warnings.get(key)?.sinceMs ?? timestamp;
      this.#warnings.set(key, { pipeline, code, reason, sinceMs });
    });
    events.on("SourceWarningEnded", ({ pipeline, code }) => this.#warnings.delete(JSON.stringify([pipeline, code])));
    // An instance that joins starts from nothing, and reports again what is still broken.
    events.on("InstanceJoined", () => this.#clear());
    events.on("InstanceLost", () => {
      this.#lanes.clear();
      this.#braked.clear();
    });
    events.on("LaneBraked", (lane) => {
      const { holds, lane: number, pipeline } = lane;
      this.#braked.set(laneKey(lane), { pipeline, lane: number, holds, sinceMs: lane.timestamp });
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
    events.on("LaneFailed", (lane) => {
      const { pipeline, lane: number, reason, timestamp } = lane;
      this.#repeat(this.#failing, laneKey(lane), { pipeline, lane: number, reason }, timestamp, LANE_EXPIRY_MS);
    });
    events.on("BatchSettled", (lane) => void (this.#failing.size > 0 && this.#failing.delete(laneKey(lane))));
    events.on("ChoreFailed", ({ chore, pipeline, reason, timestamp }) => {
      const key = JSON.stringify([pipeline, chore]);
      this.#repeat(this.#chores, key, { pipeline, chore, reason }, timestamp, LANE_EXPIRY_MS);
    });
    events.on("RelayMismatch", ({ pipeline, intentType, recordId, timestamp }) => {
      if (recordId !== null) return;
      this.#unmatched.set(pipeline, (this.#unmatched.get(pipeline) ?? new Map()).set(intentType, timestamp));
    });
    events.on("RelayMatched", ({ pipeline, intentType }) => this.#unmatched.get(pipeline)?.delete(intentType));
    events.on("PipelinePaused", ({ by, pipeline, timestamp }) =>
      this.#paused.set(pipeline, { by, sinceMs: timestamp }),
    );
    events.on("PipelineResumed", ({ pipeline }) => this.#paused.delete(pipeline));
    events.on("PipelineLimited", ({ perSecond, pipeline }) => {
      if (perSecond === null) this.#limits.delete(pipeline);
      else this.#limits.set(pipeline, perSecond);
    });
    events.on("CircuitOpened", ({ destination, topic, reason, timestamp }) =>
      this.#circuits.set(circuitKey(destination, topic), { destination, topic, reason, sinceMs: timestamp }),
    );
    events.on("CircuitClosed", ({ destination, topic }) => this.#circuits.delete(circuitKey(destination, topic)));
  }

  /** An answer disproves only that the database is unreachable. Other faults stay. */
  answered(pipeline: string): void {
    if (this.#broken.get(pipeline)?.code === "DATABASE_UNREACHABLE") this.#broken.delete(pipeline);
  }

  brokenSources(): readonly BrokenSource[] {
    return this.#lately(this.#broken, SOURCE_EXPIRY_MS).map(({ pipeline, code, reason, sinceMs }) => {
      return { pipeline, code, reason, sinceMs };
    });
  }

  /** Warnings about sources that work but can hold events back. */
  warnings(): readonly BrokenSource[] {
    return [...this.#warnings.values()];
  }

  openCircuits(): readonly OpenCircuit[] {
    return [...this.#circuits.values()];
  }

  /** Lanes of this instance that accept no new events. */
  brakedLanes(): readonly BrakedLane[] {
    return [...this.#braked.values()];
  }

  /** Lanes of this instance that deliver nothing, because they fail each time. */
  failingLanes(): readonly FailingLane[] {
    return this.#lately(this.#failing, LANE_EXPIRY_MS).filter(({ times }) => times >= LANE_TIMES);
  }

  failedChores(): readonly FailedChore[] {
    return this.#lately(this.#chores, LANE_EXPIRY_MS).filter(({ times }) => times >= CHORE_TIMES);
  }

  /** The operator's rate limit in events per second; null without a limit. */
  limitOf(pipeline: string): number | null {
    return this.#limits.get(pipeline) ?? null;
  }

  isPaused(pipeline: string): boolean {
    return this.#paused.has(pipeline);
  }

  /** When this instance learned of the pause; null while the pipeline is not paused. */
  pauseOf(pipeline: string): KnownPause | null {
    return this.#paused.get(pipeline) ?? null;
  }

  /** The number of the pipeline's lanes that this instance owns. */
  lanesOf(pipeline: string): number {
    return this.#lanes.get(pipeline)?.size ?? 0;
  }

  /**
   * The number of types in the pipeline's source that no relay matches, if this instance is the one that reports them.
   */
  unmatchedTypesOf(pipeline: string): number {
    return this.#unmatched.get(pipeline)?.size ?? 0;
  }

  /** When the first of them was reported; undefined if there are none. */
  unmatchedSinceMs(pipeline: string): number | undefined {
    const since = [...(this.#unmatched.get(pipeline)?.values() ?? [])];
    return since.length === 0 ? undefined : Math.min(...since);
  }

  /** Call for a new relay, to which the failures of the old one do not apply. */
  forget(): void {
    this.#clear();
    this.#circuits.clear();
    this.#failing.clear();
    this.#chores.clear();
  }

  #clear(): void {
    const all = [this.#broken, this.#warnings, this.#paused, this.#limits, this.#lanes, this.#braked, this.#unmatched];
    for (const kept of all) kept.clear();
  }

  /** Keeps `sinceMs` of the first report, unless the reports paused for longer than the expiry. */
  #repeat<T>(kept: Map<string, T & Repeated>, key: string, what: T, wallMs: number, expiryMs: number): void {
    const nowMs = this.#clock.monotonicMs();
    const before = kept.get(key);
    const { sinceMs, times } =
      before === undefined || nowMs - before.reportedMs > expiryMs ? { sinceMs: wallMs, times: 0 } : before;
    kept.set(key, { ...what, sinceMs, times: times + 1, reportedMs: nowMs });
  }

  #lately<T extends Repeated>(kept: ReadonlyMap<string, T>, expiryMs: number): readonly T[] {
    const fromMs = this.#clock.monotonicMs() - expiryMs;
    return [...kept.values()].filter(({ reportedMs }) => reportedMs >= fromMs);
  }
}

interface KnownPause extends Required<Lasting> {
  readonly by: string;
}

function laneKey({ pipeline, lane }: Pick<BrakedLane, "pipeline" | "lane">): string {
  return JSON.stringify([pipeline, lane]);
}

function circuitKey(destination: string, topic: string | null): string {
  return JSON.stringify([destination, topic]);
}
