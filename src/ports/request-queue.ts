import type { RequestContext } from "../requests/request-names.ts";

/** A context and where its jobs go. */
export interface RequestGroup extends RequestContext {
  readonly queue: string;
  readonly jobName: string;
  /** How long it is remembered that an event was dispatched. */
  readonly markerMs: number;
}

/** A reference to a request; the job's id is the event's. */
export interface RequestJob {
  readonly eventId: string;
  readonly tenant: string;
  readonly requestId: string;
  /** Until a worker may have it; 0 for at once. */
  readonly delayMs: number;
}

/** An event that asks for a job and cannot become one. The event itself stays in the log. */
export interface DeadRequest {
  readonly eventId: string;
  readonly type: string;
  readonly stream: string;
  readonly revision: string;
  readonly position: string;
  readonly reason: string;
  /** ISO 8601. */
  readonly at: string;
}

/** The right to dispatch for a group, until somebody else has it. */
export interface RequestLease {
  readonly token: string;
  /** What was written last; null at the very beginning. */
  readonly position: string | null;
}

export interface RequestBatch {
  readonly jobs: readonly RequestJob[];
  readonly dead: readonly DeadRequest[];
  /** The position before this batch as this lease knows it: another one means that the queue forgot something. */
  readonly after: string | null;
  readonly position: string;
}

export interface RequestStanding {
  /** Null when nobody has ever dispatched. */
  readonly position: string | null;
  /** Whose turn it is; null when it is nobody's. */
  readonly holder: string | null;
  readonly dead: number;
  /** Jobs by state: waiting, active, delayed, failed. */
  readonly jobs: Readonly<Record<string, number>>;
}

export interface Dispatched {
  /** Of each job: false when its event was dispatched before. */
  readonly isNew: readonly boolean[];
  /** Dead ones of the group that nobody has replayed or discarded; null when the batch had none. */
  readonly deadCount: number | null;
}

/**
 * Where references to requests are queued, with the memory of what was. Any method may throw a RelayError:
 * DESTINATION_UNREACHABLE means that nobody knows whether it took effect.
 */
export interface RequestQueue {
  /** Null while somebody else has it. */
  acquire(group: RequestGroup, owner: string, leaseMs: number): Promise<RequestLease | null>;

  /** What was written last, by whomever; null at the very beginning. */
  position(group: RequestGroup): Promise<string | null>;

  /** Throws FENCED when it is somebody else's, or nobody's. */
  renew(group: RequestGroup, lease: RequestLease, leaseMs: number): Promise<void>;

  release(group: RequestGroup, lease: RequestLease): Promise<void>;

  /**
   * Adds the jobs of those events that are not marked, marks them, keeps the dead ones and moves the position: all of it
   * or nothing, and only under this lease. Throws FENCED when the lease is lost, LEASE_LOST when
   * the position is another one (then everything is to be read again from there), QUEUE_FORGOT when there is nothing left.
   * Calls `sent` when it has nothing to do but wait for the answer: it may, it need not.
   */
  dispatch(group: RequestGroup, lease: RequestLease, batch: RequestBatch, sent?: () => void): Promise<Dispatched>;

  /** How the group stands, for a person. */
  standing(group: RequestGroup): Promise<RequestStanding>;

  /** The position from which whoever has the lease, or gets it, goes on within seconds. */
  seek(group: RequestGroup, position: string): Promise<void>;

  /** Dead ones, at most `max`, in no order. */
  deadRequests(group: RequestGroup, max: number): Promise<readonly DeadRequest[]>;

  /** Adds the jobs of those that are not marked, at a person's wish, and forgets that they were dead. */
  revive(group: RequestGroup, jobs: readonly RequestJob[]): Promise<readonly boolean[]>;

  /** Forgets dead ones for good; how many there were. */
  discard(group: RequestGroup, eventIds: readonly string[]): Promise<number>;

  /** What in the server's settings may make it forget, with what mends it. */
  memory(): Promise<readonly { readonly what: string; readonly fix: string }[]>;

  /** Throws when it gives no answer. */
  ping(): Promise<void>;

  close(): Promise<void>;
}
