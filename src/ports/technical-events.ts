import type { ErrorCode } from "../core/errors.ts";
import type { Scope } from "../core/outcome.ts";

interface AboutEvent {
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
    /** Until the next try; null when there is none or when a circuit decides. */
    readonly retryInMs: number | null;
  };
  IntentDeadLettered: AboutEvent & { readonly attempt: number; readonly reason: string; readonly parks: boolean };
  /** Events that no route takes. They stay where they are. */
  RelayMismatch: { readonly pipeline: string; readonly intentType: string; readonly count: number };
  /** The row was deleted or marked by somebody else while it was in flight. */
  EventVanished: { readonly pipeline: string; readonly recordId: string };
  BatchSettled: {
    readonly pipeline: string;
    readonly lane: number;
    readonly delivered: number;
    readonly failed: number;
    readonly durationMs: number;
  };
  /** The database refused a settle (locks, a deadlock, a missing grant); it is tried again, the lane waits. */
  SettleDelayed: {
    readonly pipeline: string;
    readonly lane: number;
    readonly code: ErrorCode;
    readonly tries: number;
    readonly reason: string;
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
  LaneFailed: { readonly pipeline: string; readonly lane: number; readonly code: ErrorCode; readonly reason: string };
  /** A lane has so many holds that it takes nothing new. */
  LaneBraked: { readonly pipeline: string; readonly lane: number; readonly holds: number };
  CircuitOpened: { readonly destination: string; readonly topic: string | null; readonly reason: string };
  CircuitClosed: { readonly destination: string; readonly topic: string | null };
  SourceBroken: { readonly pipeline: string; readonly code: ErrorCode; readonly reason: string };
  SourceRecovered: { readonly pipeline: string };
  ChoreFailed: { readonly pipeline: string; readonly chore: string; readonly reason: string };
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
