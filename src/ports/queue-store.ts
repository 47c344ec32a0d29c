import type { ErrorCode } from "../core/errors.ts";
import type { OutboxEvent } from "../core/event.ts";
import type { Hold, Unmarked } from "../core/hold.ts";
import type { TypeFilter } from "../core/type-filter.ts";
import type { Membership } from "./membership.ts";
import type { FailedAttempt } from "./technical-events.ts";

export type { FieldRule, TypeFilter, TypeRule } from "../core/type-filter.ts";

/** The settings of one pipeline, as its source needs them. */
export interface PipelineSpec {
  /** Unique in the database; the source stores progress under this name. */
  readonly name: string;
  readonly types: TypeFilter;
  /** The number of lanes at creation. Later the number in the database wins. */
  readonly lanes: number;
  /** Where the source counts attempts itself: a reaped event with this many attempts becomes a dead letter. */
  readonly attemptsMax: number;
  readonly payloadBytesMax: number;
  readonly headersMax: number;
  /** The deployment that serves the pipeline. Only instances of the same deployment share its lanes. Absent: all do. */
  readonly service?: string;
}

/** A source whose events are rows with a state. Several pipelines may read it; each event belongs to one of them. */
export interface QueueSource {
  readonly name: string;
  readonly membership: Membership;
  pipeline(spec: PipelineSpec): QueueStore;
  /**
   * The backlog of each pipeline, and the events that no pipeline takes, in one query. Absent where the caller must ask
   * each pipeline.
   */
  backlogs?(): Promise<SourceBacklog>;
  close(): Promise<void>;
}

/** An instance's right to read and settle a lane. Every write names its grant; under an old grant it has no effect. */
export interface Grant {
  readonly lane: number;
  readonly owner: string;
  readonly epoch: bigint;
  /**
   * The timeline of the database in which the grant was given. A failover begins a new one: rows that were read before
   * may be gone, and their ids may belong to other rows. Absent where the source has no failover.
   */
  readonly timeline?: string;
}

/** A lane as the source stores it. */
export interface LaneState {
  readonly lane: number;
  readonly owner: string | null;
  readonly epoch: bigint;
  readonly settledBatch: bigint;
  /** The timeline of the database that answered. Absent where it reports none. */
  readonly timeline?: string;
}

/** A lane that an instance has just taken over, with the progress that its former owner stored. */
export interface Takeover {
  readonly grant: Grant;
  readonly settledBatch: bigint;
  /**
   * The last batch that was settled from a ledger; 0 when there was none, ADOPTED after an operator adopted the lane.
   */
  readonly ledgeredBatch: bigint;
  /** Crashes of owners: rises when a lane was not released, and falls with every settle that delivered an event. */
  readonly crashes: number;
  readonly holds: readonly Hold[];
}

/** As a `ledgeredBatch`: accept the ledger as it is, even if it is empty or has gaps. */
export const ADOPTED = -1n;

/** How a destination that keeps a ledger identifies a pipeline. */
export interface PipelineIdentity {
  /** Generated once with the relay's schema. A copy of the database has the same one. */
  readonly database: string;
  /** The first of the pipeline's slots. It has one per lane, and no other pipeline of this database uses them. */
  readonly firstSlot: number;
  readonly lanes: number;
  /**
   * False when the relay's schema was created on another server: a restored copy, possibly beside the running original.
   */
  readonly isAtHome: boolean;
}

/** An operator has paused the pipeline: the relay claims nothing new and finishes what is in flight. */
export interface Pause {
  readonly by: string;
  readonly reason: string | null;
  /** The relay releases the lanes as well, and no instance takes them until the pause ends. */
  readonly handsOver: boolean;
}

/** What an instance has to know about a pipeline to share out its lanes. */
export interface Survey {
  /** The living instances that serve this pipeline. */
  readonly instances: readonly string[];
  readonly lanes: readonly LaneState[];
  /** Null while the pipeline is not paused. */
  readonly pause: Pause | null;
  /** The operator's rate limit in events per second and instance; null: no limit. */
  readonly limitPerSecond: number | null;
  /** Changes when an operator makes holds due: the instance re-reads its holds at once. Absent where unsupported. */
  readonly holdsChange?: string | null;
}

/** An event as read from its lane. */
export interface ClaimedEvent extends OutboxEvent {
  readonly lane: number;
  /** Failures so far. */
  readonly failures: number;
  /** Set when the row is not a valid event: the engine makes it a dead letter with this reason. */
  readonly fault: { readonly code: ErrorCode; readonly reason: string } | null;
}

/** What a run reads, and what it leaves out. */
export interface RunRequest {
  readonly grants: readonly Grant[];
  /** Keys that have enough events in flight; the run leaves out their events. Bounded. */
  readonly exceptKeys: readonly string[];
  /**
   * Types whose topic takes nothing at present. The run leaves out their events, and every event of a key that has one
   * of them pending, because it must not overtake. Bounded.
   */
  readonly exceptTypes: readonly string[];
  /** True when the event is in flight at this moment, so that a log need not return it again. Absent: unknown. */
  readonly isInFlight?: (id: string) => boolean;
}

/**
 * One pass over the pending events of some lanes, in order. Where claims are durable, `next` claims the page that it
 * returns, and the engine ends the run as soon as it hands an event of a page back.
 */
export interface Run {
  /** The lanes in this run's snapshot. Rows of a lane that another instance owns there must not be delivered. */
  readonly lanes: readonly LaneState[];
  /**
   * The next events in order: at most `rows`, and no more once all parts of the events reach `bytes` (at least one
   * event). An empty page ends the run. A run never returns a row twice, and it returns the events of one key in the
   * order in which they were written. It leaves out held events and the events of parked keys, as of its snapshot.
   * Where claims are durable, it returns no more events of a lane than `rooms` allows, and none of a lane that `rooms`
   * does not name.
   */
  next(rows: number, bytes: number, rooms?: ReadonlyMap<number, number>): Promise<readonly ClaimedEvent[]>;
  /** Ids of rows that the run skipped, because another row with the same id is in flight. Absent: it never skips. */
  readonly repeated?: readonly string[];
  /** True while another run waits for this one's connection, so this one should not stay open idle. Absent: never. */
  readonly isAwaited?: boolean;
  /** Releases the snapshot. Legal at any time, also twice and after an error. */
  end(): Promise<void>;
}

/** What follows a failure: a retry after a delay, or a dead letter that parks its key or does not. */
export type FailureNext =
  | { readonly kind: "retry"; readonly delayMs: number }
  | { readonly kind: "dead"; readonly parks: boolean };

/** A failed event, as a settle writes it. */
export interface Failure {
  readonly id: string;
  readonly key: string | null;
  readonly reason: string;
  /** Failures including this one. */
  readonly attempts: number;
  readonly next: FailureNext;
}

/** The outcomes of claimed events of one lane, written in one transaction. */
export interface Settlement {
  readonly grant: Grant;
  /**
   * The lane's `settled_batch` must be this number, and becomes `batch`: a failover that lost the settle before this
   * one is noticed here. Both are equal for failures alone, and for a part of a batch.
   */
  readonly previousBatch: bigint;
  readonly batch: bigint;
  /**
   * `batch`: whole batches of the ledger, up to this number. `heal`: whole batches that a former owner delivered, whose
   * rows this owner need not have claimed. `none`: there is no ledger.
   */
  readonly ledger: "none" | "batch" | "heal";
  readonly delivered: readonly string[];
  readonly failed: readonly Failure[];
  /** Claimed but never sent. Only sources with durable claims have something to write. */
  readonly handedBack: readonly string[];
  /** Holds to delete: those of delivered heads, and of rows that are gone. */
  readonly releasedHolds: readonly string[];
  /** Events that a crashing lane is about to send: each gets a hold in state `suspect` with one more crash counted. */
  readonly suspects: readonly { readonly id: string; readonly key: string | null }[];
  /**
   * Where claims are durable: the claimed events that were sent. If this owner dies, these and no others spend an
   * attempt. Absent: the list stays as the last settle wrote it.
   */
  readonly sending?: readonly string[];
}

/** Up to this number the backlog is counted exactly; beyond it the number is an estimate. */
export const BACKLOG_EXACT_MAX = 10_000;

/** The events of one pipeline that are not delivered yet, for people and alerts. Each event is counted once. */
export interface Backlog {
  /** Events that the relay still has to deliver, including retried and scheduled ones. */
  readonly pending: number;
  /** `pending` and `behindDead` are estimates, because an exact count would cost too much. */
  readonly isEstimate: boolean;
  /** The age of the oldest pending event since it was due; null when there is none or its age is unknown. */
  readonly oldestAgeMs: number | null;
  /** Events parked behind a dead letter of their key: the relay sends them once an operator has resolved it. */
  readonly behindDead: number;
  /** Open dead letters. */
  readonly dead: number;
  /** False while a reader of a log has lanes without a position: an event written now may still precede its start. */
  readonly hasBegun?: boolean;
}

/** Pending events of a source that no pipeline's routes take. */
export interface Unrouted {
  readonly events: number;
  readonly isEstimate: boolean;
  readonly oldestAgeMs: number | null;
}

/** The backlogs of all pipelines of a source. */
export interface SourceBacklog {
  /** By pipeline. A pipeline whose routes are unknown is missing. */
  readonly pipelines: ReadonlyMap<string, Backlog>;
  /** Null while the routes of one of the pipelines are unknown. */
  readonly unrouted: Unrouted | null;
}

/** A problem of a source that works, but may hold events back or send them elsewhere. */
export interface SourceWarning {
  readonly code: ErrorCode;
  readonly reason: string;
}

/** What a settle found out about the rows that it wrote. */
export interface SettleResult {
  /** Ids whose rows were neither pending nor in flight: another client deleted, marked or hid them in the meantime. */
  readonly missing: readonly string[];
  /**
   * Delivered ids whose rows exist and are still unmarked. The source stores a hold for each, so that no instance sends
   * it again, and tries to mark it at each review.
   */
  readonly unmarked?: ReadonlyMap<string, Unmarked>;
  /** The first error of the source for a row that it refused to mark. */
  readonly refusal?: string | undefined;
  /** The new dead letters, as far as the source knows them. */
  readonly dead?: readonly DeadLetterNote[];
}

/** A new dead letter, as the source knows it: the event need not be in this process's memory. */
export interface DeadLetterNote {
  readonly id: string;
  readonly type: string;
  readonly correlationId: string | null;
  readonly firstFailedAt: string;
  readonly lastFailedAt: string;
  readonly errors: readonly FailedAttempt[];
}

/** The result of reading held events by id. */
export interface Heads {
  readonly events: readonly ClaimedEvent[];
  /** Ids of rows that vanished, or that another client marked or claimed: their holds are void. */
  readonly gone: readonly string[];
}

/** The result of `readUnsettled`. */
export interface LookedAt {
  readonly events: readonly ClaimedEvent[];
  /** Ids that did not fit into this answer; the caller asks for them again. */
  readonly unread: readonly string[];
}

/**
 * One pipeline's events and progress. Reading, fencing and settling are one port, because fencing only works if
 * progress and rows commit together.
 *
 * Any method may throw a RelayError. DATABASE_UNREACHABLE: it is unknown whether the call took effect. FENCED: the
 * caller no longer owns the lane. Every other code is a promise that nothing took effect (see `tookNoEffect`): the
 * engine then repeats the same write instead of delivering the events again.
 */
export interface QueueStore {
  /**
   * Checks the table and creates the pipeline's lanes if they are missing. Legal to repeat; safe with concurrent
   * callers.
   */
  prepare(): Promise<{ readonly lanes: number }>;

  /** Legal after `prepare`. Assigns the pipeline its slots if it has none yet. */
  identity(): Promise<PipelineIdentity>;

  /** Reads owners, instances and the operator's settings in one consistent view. */
  survey(): Promise<Survey>;

  /**
   * Takes those of the lanes that have no owner, whose owner is no longer a member (reaped or gone), or that the caller
   * owns already. Raises the epoch beyond every epoch given out before, even by a database that lost its last commits:
   * afterwards no write under an older grant takes effect. Takes no lane when their number has changed since `prepare`.
   *
   * Frees the events that the former owner had claimed durably. If the owner died, the events that it had sent spend an
   * attempt, but never their last one: it is unknown whether they caused its death.
   */
  takeOver(owner: string, lanes: readonly number[]): Promise<readonly Takeover[]>;

  /**
   * Releases the lane in good order: the next owner counts no crash, neither on the lane nor on the events that this
   * owner has stored as suspects. No effect and no error when the caller no longer owns the lane.
   */
  release(grant: Grant, suspects?: readonly string[]): Promise<void>;

  /** One cheap statement: true when a run over these lanes would return events. May be wrong for a moment. */
  probe(grants: readonly Grant[]): Promise<boolean>;

  /** Opens a run: takes the snapshot that all its pages are read from. */
  begin(request: RunRequest): Promise<Run>;

  /**
   * Reads held events of one lane by id, to send them again. Ids in neither list are not due yet. It also returns
   * events that the caller has claimed already, and events whose hold the database has lost.
   */
  claimHeads(grant: Grant, ids: readonly string[]): Promise<Heads>;

  /**
   * Reads events that are not settled yet, without claiming them. The engine compares them with the events that a
   * ledger lists as delivered. Ids in neither list are settled or gone.
   */
  readUnsettled(ids: readonly string[]): Promise<LookedAt>;

  /**
   * Writes all of it or nothing, and only while grant and previousBatch are current; otherwise it throws FENCED. A dead
   * event leaves a copy with the error of every attempt. Rows that cannot be marked are held and returned as
   * `unmarked`.
   */
  settle(settlement: Settlement): Promise<SettleResult>;

  /**
   * Compares the lane's holds with their rows. It drops holds whose row vanished or was marked by another client,
   * revives dead ones that an operator reset, marks delivered rows that could not be marked before, and returns the
   * holds that are left. Throws FENCED.
   */
  reviewHolds(grant: Grant): Promise<readonly Hold[]>;
  /**
   * The lane's holds that will be retried, that is all but the dead. Cheap; absent where the survey has no
   * `holdsChange`.
   */
  livingHolds?(grant: Grant): Promise<readonly Hold[]>;

  /**
   * Types of pending events that no living instance takes, each with a count of at most 1,000. Empty while an instance
   * does not report which types it takes. Of several pipelines of the source only one returns them: the first by name
   * whose lane 0 has a living owner.
   */
  unrouted(): Promise<readonly { readonly type: string; readonly count: number }[]>;

  /** Counts the backlog. Cheap at any size, bounded in time, and not part of the delivery: it may fail without harm. */
  backlog(): Promise<Backlog>;

  /**
   * Problems that an operator should know although the source works. Cheap; the relay asks now and then. Absent: none.
   */
  warnings?(): Promise<readonly SourceWarning[]>;

  /** Deletes up to `rows` delivered events that are older than this. Returns how many it deleted. */
  prune(olderThanMs: number, rows: number): Promise<number>;

  /**
   * Calls back when there may be something to read, until the caller calls the returned function. A call may be a false
   * alarm. Absent where the relay has to poll.
   */
  watch?(onWakeUp: () => void): () => void;

  /** Present where claims are stored in the rows, as in an Open Outbox table. */
  readonly durableClaims: DurableClaims | null;
}

/** Claims that other relays can see, because they are stored in the rows. */
export interface DurableClaims {
  /** The claim's own lease, in ms. */
  readonly leaseMs: number;
  /**
   * Renews the owner's claims of these events, so that no other relay considers them stuck. Gives back the owner's
   * other claims that are older than their lease: a database that lost its last commits has restored them, and no one
   * works on them.
   */
  refresh(owner: string, ids: readonly string[]): Promise<void>;
  /** Frees events whose claim is older than its lease and whose owner is not a living instance of this relay. */
  reapStale(rows: number): Promise<{ readonly freed: number; readonly dead: number }>;
}
