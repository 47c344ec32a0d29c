import type { ErrorCode } from "../core/errors.ts";
import type { OutboxEvent } from "../core/event.ts";
import type { Hold, Unmarked } from "../core/hold.ts";
import type { TypeFilter } from "../core/type-filter.ts";
import type { Membership } from "./membership.ts";
import type { FailedAttempt } from "./technical-events.ts";

export type { FieldRule, TypeFilter, TypeRule } from "../core/type-filter.ts";

export interface PipelineSpec {
  /** Unique in the database; progress is kept under it. */
  readonly name: string;
  readonly types: TypeFilter;
  /** Proposed at creation; what the database says wins. */
  readonly lanes: number;
  /** From this attempt on a reaped event is dead, where the source counts attempts itself. */
  readonly attemptsMax: number;
  readonly payloadBytesMax: number;
  readonly headersMax: number;
  /** The deployment that serves it; lanes are shared with instances of the same one alone. Absent: with all. */
  readonly service?: string;
}

/** Where events wait in rows that carry a state. Several pipelines may read one source, each event belongs to one. */
export interface QueueSource {
  readonly name: string;
  readonly membership: Membership;
  pipeline(spec: PipelineSpec): QueueStore;
  close(): Promise<void>;
}

/** A lane in the hands of an instance. Every write names it and changes nothing when it is no longer true. */
export interface Grant {
  readonly lane: number;
  readonly owner: string;
  readonly epoch: bigint;
  /**
   * The line of the database's history in which it was given. A failover begins another: what was read before may be
   * gone, and its id may be given out again. Absent where the source knows no failover.
   */
  readonly timeline?: string;
}

export interface LaneState {
  readonly lane: number;
  readonly owner: string | null;
  readonly epoch: bigint;
  readonly settledBatch: bigint;
  /** Of the database that was asked. Absent where it does not say. */
  readonly timeline?: string;
}

export interface Takeover {
  readonly grant: Grant;
  readonly settledBatch: bigint;
  /** The last batch that was settled out of a ledger; 0 when there was none, ADOPTED after a person's word. */
  readonly ledgeredBatch: bigint;
  /** Crashes of owners, raised when the lane was not released; falls with every settle that delivered something. */
  readonly crashes: number;
  readonly holds: readonly Hold[];
}

/** As a `ledgeredBatch`: whatever the ledger says or lacks is to be taken as it is. */
export const ADOPTED = -1n;

/** What a pipeline is in the eyes of a destination that keeps a ledger. */
export interface PipelineIdentity {
  /** Made once with the relay's schema; travels with a copy of the database. */
  readonly database: string;
  /** The first of as many numbers as it has lanes, which are its own in this database. */
  readonly firstSlot: number;
  readonly lanes: number;
  /** False when the relay's schema was made on another server: a restored copy, perhaps beside the original. */
  readonly isAtHome: boolean;
}

/** A person has stopped the pipeline. Nothing new is claimed; what is in flight is finished. */
export interface Pause {
  readonly by: string;
  readonly reason: string | null;
  /** Its lanes are to be handed over as well, and nobody takes them until it is over. */
  readonly handsOver: boolean;
}

export interface Survey {
  /** Living instances that serve this pipeline. */
  readonly instances: readonly string[];
  readonly lanes: readonly LaneState[];
  /** Null while nobody has stopped it. */
  readonly pause: Pause | null;
  /** Events a second that each instance may send at most, as a person wishes it; null: as many as it can. */
  readonly limitPerSecond: number | null;
  /** Another text than before: a person has made holds due, and they are to be looked at now. Absent where nobody can. */
  readonly holdsChange?: string | null;
}

/** An event as read from its lane. */
export interface ClaimedEvent extends OutboxEvent {
  readonly lane: number;
  /** Failures so far. */
  readonly failures: number;
  /** Set when the row is no proper event: the engine makes it a dead letter with this reason. */
  readonly fault: { readonly code: ErrorCode; readonly reason: string } | null;
}

export interface RunRequest {
  readonly grants: readonly Grant[];
  /** Keys that have enough events in flight already; their events are left out. Bounded. */
  readonly exceptKeys: readonly string[];
  /**
   * Types whose topic takes nothing at present. Their events are left out, and so is every event of a key that has
   * one of them pending, because it must not overtake. Bounded.
   */
  readonly exceptTypes: readonly string[];
  /** Whether an event is in flight at this moment: a log need not show it again. Absent: nobody knows. */
  readonly isInFlight?: (id: string) => boolean;
}

/**
 * A pass over the pending events of some lanes, in order. Where claims are durable, a page is claimed when it is
 * shown, and the engine ends the run as soon as it hands an event of it back.
 */
export interface Run {
  /** The lanes as this run's snapshot shows them. Rows of a lane that is not the caller's must not be delivered. */
  readonly lanes: readonly LaneState[];
  /**
   * The next events in order, at most `rows`, and no more after `bytes` are reached, all parts of the events together (one event at least);
   * an empty page ends the run. Never shows a row twice. Events of one key
   * come in the order in which they were written. Leaves out held events and the events of parked keys, by the
   * snapshot. Where claims are durable, no more of a lane than `rooms` says, and none of a lane that is not in it.
   */
  next(rows: number, bytes: number, rooms?: ReadonlyMap<number, number>): Promise<readonly ClaimedEvent[]>;
  /** Ids of rows that were passed over, because another row under the same id is under way. Absent: none ever is. */
  readonly repeated?: readonly string[];
  /** Whether somebody else waits for what this run holds, so that it should not stay open for nothing. Absent: nobody. */
  readonly isAwaited?: boolean;
  /** Lets go of the snapshot. Legal at any time, also twice and after an error. */
  end(): Promise<void>;
}

export type FailureNext =
  | { readonly kind: "retry"; readonly delayMs: number }
  | { readonly kind: "dead"; readonly parks: boolean };

export interface Failure {
  readonly id: string;
  readonly key: string | null;
  readonly reason: string;
  /** Failures including this one. */
  readonly attempts: number;
  readonly next: FailureNext;
}

/** What became of claimed events of one lane, to be written in one piece. */
export interface Settlement {
  readonly grant: Grant;
  /** The lane's settled_batch must be this; it becomes `batch`. Equal for failures alone, and for a part of a batch. */
  readonly previousBatch: bigint;
  readonly batch: bigint;
  /**
   * `batch`: these are whole batches of the ledger, up to this number. `heal`: so they are, but a former owner
   * delivered them, so their rows need not be claimed by this one. `none`: there is no ledger.
   */
  readonly ledger: "none" | "batch" | "heal";
  readonly delivered: readonly string[];
  readonly failed: readonly Failure[];
  /** Claimed but never sent. Only sources with durable claims have anything to do. */
  readonly handedBack: readonly string[];
  /** Holds to be deleted: of delivered heads, and of rows that are gone. */
  readonly releasedHolds: readonly string[];
  /** About to be sent by a lane that keeps crashing: a hold in state `suspect` with one more crash counted. */
  readonly suspects: readonly { readonly id: string; readonly key: string | null }[];
  /**
   * Where claims are durable: the claimed events that were sent. If this owner dies, an attempt is counted on these and
   * on no others. Absent: as it was written before.
   */
  readonly sending?: readonly string[];
}

/** Waiting events are counted one by one up to here; beyond it the number is an estimate. */
export const BACKLOG_EXACT_MAX = 10_000;

/** How much waits, for people and alarms. What waits for a person alone is in `dead`, and nowhere else. */
export interface Backlog {
  /** Not delivered yet, retried ones included; neither dead letters nor what is parked behind one. */
  readonly pending: number;
  readonly isEstimate: boolean;
  /** Of the oldest of those; null when there is none or nothing tells. */
  readonly oldestAgeMs: number | null;
  /** Dead letters that nobody has resolved. */
  readonly dead: number;
}

/** Something about a source that works and may still keep events back, or lead them elsewhere. */
export interface SourceWarning {
  readonly code: ErrorCode;
  readonly reason: string;
}

export interface SettleResult {
  /** Ids found neither pending nor in flight any more: somebody deleted, marked or hid the row meanwhile. */
  readonly missing: readonly string[];
  /**
   * Delivered ids whose rows are still there and still unmarked. The source holds them, so that nobody sends them again,
   * and tries to mark them at each review.
   */
  readonly unmarked?: ReadonlyMap<string, Unmarked>;
  /** What the new dead letters hold, as far as the source can tell. */
  readonly dead?: readonly DeadLetterNote[];
}

/** What is told of an event that died, also when nobody here has it in memory. */
export interface DeadLetterNote {
  readonly id: string;
  readonly type: string;
  readonly correlationId: string | null;
  readonly firstFailedAt: string;
  readonly lastFailedAt: string;
  readonly errors: readonly FailedAttempt[];
}

export interface Heads {
  readonly events: readonly ClaimedEvent[];
  /** Rows that vanished, or were marked or taken by others: their holds are void. */
  readonly gone: readonly string[];
}

export interface LookedAt {
  readonly events: readonly ClaimedEvent[];
  /** There was no room for these; ask again. */
  readonly unread: readonly string[];
}

/**
 * One pipeline's events and progress. Reading, fencing and settling are one port, because fencing only holds if
 * progress and rows commit together.
 *
 * Any method may throw a RelayError. DATABASE_UNREACHABLE means that nobody knows whether it took effect, FENCED that
 * the caller owns nothing any more; every other code is a promise that nothing took effect (see `tookNoEffect`).
 */
export interface QueueStore {
  /** Checks the table and makes sure that the pipeline's lanes exist. Legal to repeat; safe beside others. */
  prepare(): Promise<{ readonly lanes: number }>;

  /** Legal after `prepare`. Gives the pipeline its slots when it has none yet. */
  identity(): Promise<PipelineIdentity>;

  survey(): Promise<Survey>;

  /**
   * Takes those of the lanes whose owner is nobody, no longer a member (reaped or gone), or the caller itself; raises the epoch beyond every
   * one given out before, also by a database that forgot its last commits. Afterwards no write under an older grant
   * takes effect. Takes none when the number of lanes is no longer the one that `prepare` found. Frees the events that the former owner had claimed durably. If it died, an attempt is counted on those that it had
   * sent, but never the last one: nobody knows whether they had to do with its death.
   */
  takeOver(owner: string, lanes: readonly number[]): Promise<readonly Takeover[]>;

  /**
   * Gives the lane up in good order, so that the next owner does not count a crash, neither on the lane nor on those
   * events that this owner has written down as suspects. Fenced: no effect, no error.
   */
  release(grant: Grant, suspects?: readonly string[]): Promise<void>;

  /** Cheap, one statement: whether a run over these lanes would show anything. May be wrong for a moment. */
  probe(grants: readonly Grant[]): Promise<boolean>;

  begin(request: RunRequest): Promise<Run>;

  /**
   * Reads held events of one lane by id, ready to be sent again. Ids in neither list are not due yet. A durable claim
   * that is the caller's already is no obstacle, nor is a hold that the database forgot.
   */
  claimHeads(grant: Grant, ids: readonly string[]): Promise<Heads>;

  /**
   * Reads events that are not settled yet, without claiming them: to compare them with what a ledger calls delivered.
   * Ids in neither list are settled or gone.
   */
  lookAt(ids: readonly string[]): Promise<LookedAt>;

  /**
   * Writes all of it or nothing, and only while grant and previousBatch hold, else throws FENCED. Dead events leave a
   * copy with the error of every attempt. Rows that do not let themselves be marked are held and returned as `unmarked`.
   */
  settle(settlement: Settlement): Promise<SettleResult>;

  /**
   * Compares the lane's holds with their rows: drops those whose row vanished or was marked by others, revives dead
   * ones that a person reset, marks delivered rows that could not be marked before, and returns what is left. Throws
   * FENCED.
   */
  reviewHolds(grant: Grant): Promise<readonly Hold[]>;
  /** The lane's holds that are to be tried again, all but the dead. Cheap; absent where no `holdsChange` is told. */
  livingHolds?(grant: Grant): Promise<readonly Hold[]>;

  /**
   * Types of pending events that no living instance takes, with a count capped at 1,000 each. None while an instance
   * does not say what it takes. Of several pipelines of the source only one answers: the first by name whose lane 0
   * has a living owner.
   */
  unrouted(): Promise<readonly { readonly type: string; readonly count: number }[]>;

  /** Cheap whatever waits, bounded in time, and no part of the delivery: it may fail without harm. */
  backlog(): Promise<Backlog>;

  /** Cheap, and asked now and then: what a person should know although everything seems to work. Absent: nothing ever. */
  warnings?(): Promise<readonly SourceWarning[]>;

  /** Deletes up to `rows` delivered events older than this. Returns how many. */
  prune(olderThanMs: number, rows: number): Promise<number>;

  /**
   * Calls back when there may be something to read, perhaps in vain, and as long as nobody stops it by what this
   * returns. Absent where only a look tells.
   */
  watch?(onNews: () => void): () => void;

  /** Present where a claim is written into the row, as in the Open Outbox table. */
  readonly durableClaims: DurableClaims | null;
}

export interface DurableClaims {
  /** The claim's own lease, in ms. */
  readonly leaseMs: number;
  /**
   * Prolongs the owner's claims of these events, so that no other relay takes them for stuck. Claims of the owner that
   * are not among them and are older than their lease are given back: a database that forgot its last commits brought
   * them back, and nobody knows of them.
   */
  refresh(owner: string, ids: readonly string[]): Promise<void>;
  /** Frees events whose claim is older than its lease and whose owner is no living instance of ours. */
  reapStale(rows: number): Promise<{ readonly freed: number; readonly dead: number }>;
}
