/** One bounded context's requests: where they are written, and under which names their traces are kept. */
export interface RequestContext {
  readonly context: string;
  readonly aggregate: string;
  /** Of the keys in Redis and of the metrics. */
  readonly namespace: string;
}

/** A request context, and the queue that its jobs go to. */
export interface RequestGroup extends RequestContext {
  readonly queue: string;
  readonly jobName: string;
  /** How long the queue remembers that an event was dispatched. Within this time a repeated dispatch adds no job. */
  readonly markerMs: number;
}

/** A reference to a request. The job's id is the event's id. */
export interface RequestJob {
  readonly eventId: string;
  readonly tenant: string;
  readonly requestId: string;
  /** How long before a worker may take the job; 0 for at once. */
  readonly delayMs: number;
}

/** An event that requests a job but cannot become one. The event itself stays in the log. */
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

/** The right to dispatch for a group, until another dispatcher acquires it. */
export interface RequestLease {
  readonly token: string;
  /** The last stored position; null before the first dispatch. */
  readonly position: string | null;
}

/** Everything that one dispatch writes, in one piece. */
export interface RequestBatch {
  readonly jobs: readonly RequestJob[];
  readonly dead: readonly DeadRequest[];
  /** The position that this lease expects before the batch. If the stored one differs, the queue has lost writes. */
  readonly after: string | null;
  readonly position: string;
}

/** The state of a group, for people. */
export interface RequestStanding {
  /** Null when nothing has ever been dispatched. */
  readonly position: string | null;
  /** The instance that holds the lease; null when no instance does. */
  readonly holder: string | null;
  readonly dead: number;
  /** Jobs by state: waiting, active, delayed, failed. */
  readonly jobs: Readonly<Record<string, number>>;
}

/** The result of a dispatch. */
export interface Dispatched {
  /** For each job, in order: false when its event had been dispatched before. */
  readonly isNew: readonly boolean[];
  /** The group's dead requests that are neither replayed nor discarded; null when the batch had none. */
  readonly deadCount: number | null;
}

/**
 * A queue of references to requests, which remembers what was dispatched. Any method may throw a RelayError:
 * DESTINATION_UNREACHABLE means that it is unknown whether the call took effect.
 */
export interface RequestQueue {
  /** Acquires the lease of a group. Null while another owner holds it. */
  acquire(group: RequestGroup, owner: string, leaseMs: number): Promise<RequestLease | null>;

  /** The last stored position, of any owner; null before the first dispatch. */
  position(group: RequestGroup): Promise<string | null>;

  /** Renews the lease. Throws FENCED when another owner holds it, or no one does. */
  renew(group: RequestGroup, lease: RequestLease, leaseMs: number): Promise<void>;

  release(group: RequestGroup, lease: RequestLease): Promise<void>;

  /**
   * Adds jobs for the events that are not marked yet, marks them, keeps the dead requests and moves the position: all
   * of it or nothing, and only under this lease. Throws FENCED when the lease is lost, LEASE_LOST when the stored
   * position is another one (the caller reads again from there), and QUEUE_FORGOT when the queue has lost everything.
   * It may call `sent` when it only waits for the answer.
   */
  dispatch(group: RequestGroup, lease: RequestLease, batch: RequestBatch, sent?: () => void): Promise<Dispatched>;

  /** The state of the group, for people. */
  standing(group: RequestGroup): Promise<RequestStanding>;

  /** Sets the position from which the present or next owner of the lease continues, within seconds. */
  seek(group: RequestGroup, position: string): Promise<void>;

  /** Dead requests, at most `max`, in no particular order. */
  deadRequests(group: RequestGroup, max: number): Promise<readonly DeadRequest[]>;

  /**
   * Replays dead requests for an operator: adds the jobs whose events are not marked and deletes their dead requests.
   */
  revive(group: RequestGroup, jobs: readonly RequestJob[]): Promise<readonly boolean[]>;

  /** Deletes dead requests for good. Returns how many there were. */
  discard(group: RequestGroup, eventIds: readonly string[]): Promise<number>;

  /** Server settings that can make the queue lose data, each with its fix. */
  memory(): Promise<readonly { readonly what: string; readonly fix: string }[]>;

  /** Throws when the queue does not answer. */
  ping(): Promise<void>;

  close(): Promise<void>;
}
