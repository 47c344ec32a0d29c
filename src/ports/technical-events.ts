import type { ErrorCode } from "../core/errors.ts";
import type { LatencyCounts } from "../core/latency.ts";
import type { FailureScope } from "../core/outcome.ts";

/** One failed attempt of an event, as its hold stores it. */
export interface FailedAttempt {
  /** ISO 8601. */
  readonly at: string;
  readonly attempt: number;
  readonly reason: string;
}

/** The event that a technical event is about, and its target. */
export interface AboutEvent {
  readonly pipeline: string;
  readonly recordId: string;
  readonly intentType: string;
  readonly target: string;
  readonly key: string | null;
  readonly correlationId: string | null;
}

/**
 * Everything that the relay does, typed. Log lines, metrics, spans and the console are made from these; core and
 * adapters never log. Times are wall time in ms, durations are in ms.
 */
export interface TechnicalEventMap {
  IntentRelayed: AboutEvent & { readonly durationMs: number; readonly attempt: number };
  IntentRelayFailed: AboutEvent & {
    readonly durationMs: number;
    readonly attempt: number;
    readonly reason: string;
    readonly scope: FailureScope;
    /** One of a small fixed set of words: the relay's error code, or the destination's. */
    readonly errorType: string;
    /** The stack of the thrown error with its causes; null when the destination answered with a failure. Bounded. */
    readonly stack: string | null;
    /** Until the next attempt; null when there is none or when a circuit decides. */
    readonly retryInMs: number | null;
  };
  IntentDeadLettered: AboutEvent & {
    readonly attempt: number;
    readonly reason: string;
    readonly parks: boolean;
    /** ISO 8601; null where the source does not report it. */
    readonly firstFailedAt: string | null;
    readonly lastFailedAt: string | null;
    /** Every failed attempt that the source has stored, oldest first. */
    readonly errors: readonly FailedAttempt[];
  };
  /**
   * No living instance takes events of this type, so they stay in the source. Reported once. With a record id: this
   * event was given to the intent relay of another type, and nothing was sent.
   */
  RelayMismatch: {
    readonly pipeline: string;
    readonly intentType: string;
    readonly count: number;
    readonly recordId: string | null;
  };
  /** A RelayMismatch is over: an instance takes the type now, its events are gone, or another pipeline reports it. */
  RelayMatched: { readonly pipeline: string; readonly intentType: string };
  /** Another client deleted, marked or hid the row of an event while the event was in flight. */
  EventVanished: { readonly pipeline: string; readonly recordId: string };
  /** A log has another row with the id of an event that is in flight or parked. The relay treats it as the same event and skips it. */
  EventRepeated: { readonly pipeline: string; readonly recordId: string };
  BatchSettled: {
    readonly pipeline: string;
    readonly lane: number;
    readonly delivered: number;
    readonly failed: number;
    readonly durationMs: number;
    /** From the time at which the delivered events were written until now; null where no row has that time. */
    readonly latency: LatencyCounts | null;
  };
  /** The database refused a settle (locks, a deadlock, a missing grant). The relay retries it, and the lane waits. */
  SettleDelayed: {
    readonly pipeline: string;
    readonly lane: number;
    readonly code: ErrorCode;
    readonly tries: number;
    readonly reason: string;
    readonly stack?: string | null;
  };
  /** The source answered what it is asked regularly; `pollMs` is the time of a look for events, null where it was none. */
  SourceAnswered: { readonly pipeline: string; readonly pollMs: number | null };
  RunEnded: { readonly pipeline: string; readonly rows: number; readonly claimed: number; readonly durationMs: number };
  InstanceJoined: { readonly instance: string };
  InstanceLost: { readonly instance: string; readonly reason: string };
  InstanceReaped: { readonly instance: string };
  LaneTaken: { readonly pipeline: string; readonly lane: number; readonly epoch: bigint; readonly crashes: number };
  /**
   * The lane's former owner had delivered `count` events without settling them; the relay settled them from the ledger.
   * `reusedIds` counts events with an id from the ledger that the database has given out a second time: those are new
   * events, and the relay delivers them.
   */
  LaneHealed: {
    readonly pipeline: string;
    readonly lane: number;
    readonly batches: number;
    readonly count: number;
    readonly reusedIds: number;
  };
  LaneReleased: { readonly pipeline: string; readonly lane: number };
  LaneFailed: {
    readonly pipeline: string;
    readonly lane: number;
    readonly code: ErrorCode;
    readonly reason: string;
    readonly stack?: string | null;
  };
  /**
   * A publisher did not end a publish after its abort, so its messages may arrive late. The lane continues without it.
   */
  PublishStuck: { readonly pipeline: string; readonly lane: number; readonly afterMs: number };
  /** Too many events of the lane have failed and block others: the lane takes no new events. */
  LaneBraked: { readonly pipeline: string; readonly lane: number; readonly holds: number };
  LaneUnbraked: { readonly pipeline: string; readonly lane: number };
  CircuitOpened: {
    readonly destination: string;
    readonly topic: string | null;
    readonly reason: string;
    readonly stack?: string | null;
  };
  CircuitClosed: { readonly destination: string; readonly topic: string | null };
  /**
   * An operator has paused the pipeline: the relay claims nothing new. Each instance reports it again when it starts.
   */
  PipelinePaused: { readonly pipeline: string; readonly by: string; readonly reason: string | null };
  PipelineResumed: { readonly pipeline: string };
  /** An operator has set or removed a rate limit. Each instance that starts under a limit reports it again. */
  PipelineLimited: { readonly pipeline: string; readonly perSecond: number | null };
  SourceBroken: {
    readonly pipeline: string;
    readonly code: ErrorCode;
    readonly reason: string;
    readonly stack?: string | null;
  };
  SourceRecovered: { readonly pipeline: string };
  /**
   * The source works, but a problem may hold events back or send them elsewhere. Reported once, and again when it
   * changes.
   */
  SourceWarned: { readonly pipeline: string; readonly code: ErrorCode; readonly reason: string };
  SourceWarningEnded: { readonly pipeline: string; readonly code: ErrorCode };
  ChoreFailed: {
    readonly pipeline: string;
    readonly chore: string;
    readonly reason: string;
    readonly stack?: string | null;
  };
  StaleClaimsReaped: { readonly pipeline: string; readonly freed: number; readonly dead: number };
  EventsPruned: { readonly pipeline: string; readonly count: number };
}

/** The names that listeners subscribe to. */
export type TechnicalEventName = keyof TechnicalEventMap;

/** Any technical event, with its name and wall time. */
export type TechnicalEvent = {
  [Name in TechnicalEventName]: { readonly name: Name; readonly timestamp: number } & TechnicalEventMap[Name];
}[TechnicalEventName];

/** Where core and engine emit technical events. */
export interface TechnicalEvents {
  /** False when there is no listener, so that the hot path need not build the event. */
  wants(name: TechnicalEventName): boolean;
  /** Calls the listeners. A listener that throws never disturbs the delivery. */
  emit<Name extends TechnicalEventName>(name: Name, event: TechnicalEventMap[Name]): void;
}

/** Stores technical events. The application chooses the store. */
export interface TechnicalEventStore {
  append(events: readonly TechnicalEvent[]): Promise<void>;
  close(): Promise<void>;
}
