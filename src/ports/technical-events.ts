import type { ErrorCode } from "../core/errors.ts";
import type { LatencyCounts } from "../core/latency.ts";
import type { Scope } from "../core/outcome.ts";

/** One failed attempt of an event, as its hold keeps it. */
export interface FailedAttempt {
  /** ISO 8601. */
  readonly at: string;
  readonly attempt: number;
  readonly reason: string;
}

/** Which event it is about, and where that was sent. */
export interface AboutEvent {
  readonly pipeline: string;
  readonly recordId: string;
  readonly intentType: string;
  readonly target: string;
  readonly key: string | null;
  readonly correlationId: string | null;
}

/**
 * Everything the relay does, typed. Logs, metrics, spans and the console are made from these; core and adapters
 * never log. Times are wall time in ms, durations in ms.
 */
export interface TechnicalEventMap {
  IntentRelayed: AboutEvent & { readonly durationMs: number; readonly attempt: number };
  IntentRelayFailed: AboutEvent & {
    readonly durationMs: number;
    readonly attempt: number;
    readonly reason: string;
    readonly scope: Scope;
    /** A word of a small fixed set: our error code, or the destination's. */
    readonly errorType: string;
    /** Of the error that was thrown, with its causes; null when the failure was an answer. Bounded. */
    readonly stack: string | null;
    /** Until the next try; null when there is none or when a circuit decides. */
    readonly retryInMs: number | null;
  };
  IntentDeadLettered: AboutEvent & {
    readonly attempt: number;
    readonly reason: string;
    readonly parks: boolean;
    /** ISO 8601; null where the source does not tell. */
    readonly firstFailedAt: string | null;
    readonly lastFailedAt: string | null;
    /** Every failed attempt that the source remembers, the oldest first. */
    readonly errors: readonly FailedAttempt[];
  };
  /**
   * Nobody takes events of this type, neither this relay nor any other that lives, and they stay where they are: told
   * once. With a record id: this one was handed to the relay of another type, and nothing was sent.
   */
  RelayMismatch: {
    readonly pipeline: string;
    readonly intentType: string;
    readonly count: number;
    readonly recordId: string | null;
  };
  /** A RelayMismatch is over: somebody takes the type now, its events are gone, or another pipeline tells of it. */
  RelayMatched: { readonly pipeline: string; readonly intentType: string };
  /** The row of an event in flight waits no more, and not by the relay's doing: it was deleted, marked or hidden. */
  EventVanished: { readonly pipeline: string; readonly recordId: string };
  /** A log has another row under the id of an event that is under way: it is taken for the same event and passed over. */
  EventRepeated: { readonly pipeline: string; readonly recordId: string };
  BatchSettled: {
    readonly pipeline: string;
    readonly lane: number;
    readonly delivered: number;
    readonly failed: number;
    readonly durationMs: number;
    /** From the writing of the delivered events to now; null where no row tells when it was written. */
    readonly latency: LatencyCounts | null;
  };
  /** The database refused a settle (locks, a deadlock, a missing grant); it is tried again, the lane waits. */
  SettleDelayed: {
    readonly pipeline: string;
    readonly lane: number;
    readonly code: ErrorCode;
    readonly tries: number;
    readonly reason: string;
    readonly stack?: string | null;
  };
  RunEnded: { readonly pipeline: string; readonly rows: number; readonly claimed: number; readonly durationMs: number };
  InstanceJoined: { readonly instance: string };
  InstanceLost: { readonly instance: string; readonly reason: string };
  InstanceReaped: { readonly instance: string };
  LaneTaken: { readonly pipeline: string; readonly lane: number; readonly epoch: bigint; readonly crashes: number };
  /**
   * So many events had been delivered by the lane's former owner without being settled; the ledger knew. Strangers are
   * events whose id the database gave out a second time: they are delivered as new ones.
   */
  LaneHealed: {
    readonly pipeline: string;
    readonly lane: number;
    readonly batches: number;
    readonly count: number;
    readonly strangers: number;
  };
  LaneReleased: { readonly pipeline: string; readonly lane: number };
  LaneFailed: {
    readonly pipeline: string;
    readonly lane: number;
    readonly code: ErrorCode;
    readonly reason: string;
    readonly stack?: string | null;
  };
  /** A lane has so many holds that it takes nothing new. */
  /** A publisher did not give up what it was sending when it was told to: that may arrive late. The lane goes on. */
  PublishStuck: { readonly pipeline: string; readonly lane: number; readonly afterMs: number };
  /** So many events of the lane failed and keep others waiting that it takes nothing new. */
  LaneBraked: { readonly pipeline: string; readonly lane: number; readonly holds: number };
  LaneUnbraked: { readonly pipeline: string; readonly lane: number };
  CircuitOpened: {
    readonly destination: string;
    readonly topic: string | null;
    readonly reason: string;
    readonly stack?: string | null;
  };
  CircuitClosed: { readonly destination: string; readonly topic: string | null };
  /** A person has stopped the pipeline: nothing new is claimed. Told again by every instance that begins. */
  PipelinePaused: { readonly pipeline: string; readonly by: string; readonly reason: string | null };
  PipelineResumed: { readonly pipeline: string };
  /** A person has set a limit of events a second, or ended it. Told again by every instance that begins under one. */
  PipelineLimited: { readonly pipeline: string; readonly perSecond: number | null };
  SourceBroken: {
    readonly pipeline: string;
    readonly code: ErrorCode;
    readonly reason: string;
    readonly stack?: string | null;
  };
  SourceRecovered: { readonly pipeline: string };
  /** The source works, but something may keep events back or lead them elsewhere. Told once, and again when it changes. */
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

export type TechnicalEventName = keyof TechnicalEventMap;

export type TechnicalEvent = {
  [Name in TechnicalEventName]: { readonly name: Name; readonly timestamp: number } & TechnicalEventMap[Name];
}[TechnicalEventName];

export interface TechnicalEvents {
  /** False lets the hot path skip building an event that nobody hears. */
  wants(name: TechnicalEventName): boolean;
  /** A listener that throws never disturbs the delivery. */
  emit<Name extends TechnicalEventName>(name: Name, event: TechnicalEventMap[Name]): void;
}

/** Keeps technical events; the store of them is the shell's choice. */
export interface TechnicalEventStore {
  append(events: readonly TechnicalEvent[]): Promise<void>;
  close(): Promise<void>;
}
