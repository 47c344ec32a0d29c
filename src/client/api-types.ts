// Made by `npm run generate` from the routes and schemas of src/http.

export interface Attempt {
  readonly at: string;
  readonly pipeline: string;
  readonly instance: string | null;
  readonly outcome: "delivered" | "failed" | "dead";
  readonly attempt: number;
  readonly reason: string | null;
  readonly errorType: string | null;
  /** Topic, subject, stream, queue or URL. */
  readonly target: string | null;
  readonly writtenAt: string | null;
  readonly claimedAt: string | null;
  readonly sentAt: string | null;
  /** From the request to its response. */
  readonly durationMs: number | null;
  /** Headers as sent. */
  readonly headers: Readonly<Record<string, string>> | null;
}

export interface AuditEntry {
  readonly id: string;
  readonly at: string;
  readonly actor: string;
  readonly via: "api" | "console" | "cli" | "relay";
  /** One of pause, resume, limit, lanes, replay, discard, edit, plan, plan-run, plan-pause, plan-cancel, plan-stopped, plan-done, key-retry, key-skip, key-resume, key-discard, log-seek, log-reset, pipeline-forget, login, login-refused, logout, payload-read, export. */
  readonly action: string;
  readonly target: string | null;
  readonly eventId: string | null;
  readonly reason: string | null;
  readonly detail: Readonly<Record<string, unknown>>;
}

/** Cancel a plan permanently; events that were not sent stay as they are. */
export interface CancelReplayRequest {
  /** Id of the plan. */
  readonly id: string;
  /** The reason, for the audit. */
  readonly reason?: string | undefined;
}

export interface ChangedEvents {
  /** Ids of the changed events. */
  readonly changed: readonly string[];
}

export interface ChangedPipelines {
  readonly pipelines: readonly {
    readonly pipeline: string;
    readonly hasChanged: boolean;
  }[];
}

export interface ChangeKeysAnswer {
  /** Ids of the changed events. */
  readonly changed: readonly string[];
  readonly failed: readonly {
    readonly pipeline: string;
    readonly key: string;
    readonly reason: string;
  }[];
}

/** Apply one action to several keys, independently of each other. */
export interface ChangeKeysRequest {
  readonly action: "retry" | "skip" | "resume" | "discard";
  readonly keys: readonly {
    /** Name of the pipeline, as in GET /api/v1/pipelines. */
    readonly pipeline: string;
    readonly key: string;
  }[];
  /** Required to skip and to discard. */
  readonly reason?: string | undefined;
}

/** Pause, resume or limit several pipelines. */
export interface ChangePipelinesRequest {
  readonly action: "pause" | "resume" | "limit";
  /** Full names of pipelines. */
  readonly pipelines: readonly string[];
  /** Required for the action limit; null removes the limit. */
  readonly perSecond?: number | null | undefined;
  /** The reason, for the audit. */
  readonly reason?: string | undefined;
}

export interface Correlation {
  readonly correlationId: string;
  readonly events: readonly ListedEvent[];
  /** History of these events in order of time; deliveries as far as they were recorded. */
  readonly steps: readonly {
    readonly at: string;
    readonly what: "written" | "delivered" | "failed" | "dead";
    readonly id: string;
    readonly source: string;
    readonly type: string;
    readonly key: string | null;
    /** Null for the creation of the event. */
    readonly pipeline: string | null;
    readonly destination: string | null;
    readonly durationMs: number | null;
    readonly reason: string | null;
  }[];
  /** Not all events of this id are shown. */
  readonly isMore: boolean;
  readonly traceUrl: string | null;
}

export interface DeadLetter {
  readonly letterId: string;
  readonly source: string;
  readonly pipeline: string;
  readonly id: string;
  readonly type: string;
  readonly key: string | null;
  readonly correlationId: string | null;
  readonly reason: string;
  readonly group: string;
  readonly failures: number;
  readonly firstFailedAt: string | null;
  readonly lastFailedAt: string | null;
  readonly resolution: {
    readonly how: "replayed" | "discarded";
    readonly at: string;
    readonly by: string | null;
    readonly reason: string | null;
  } | null;
}

export interface DeadLetterChange {
  readonly plan: DeadLetterChangePlan;
  /** Null after a dry run. */
  readonly report: {
    readonly done: number;
    readonly left: readonly {
      readonly source: string;
      readonly id: string;
      readonly reason: string;
    }[];
    readonly leftCount: number;
    readonly unknown: readonly string[];
  } | null;
}

export interface DeadLetterChangePlan {
  readonly count: number;
  readonly keys: number;
  readonly byType: Readonly<Record<string, number>>;
  readonly bySource: Readonly<Record<string, number>>;
  readonly byError: Readonly<Record<string, number>>;
  readonly parking: number;
  readonly warnings: readonly string[];
  /** By destination, error and type, largest first. */
  readonly strata: readonly Stratum[];
}

export interface DeadLetterGroup {
  readonly group: string;
  readonly error: string;
  readonly count: number;
  /** Distinct keys in the sample. */
  readonly keys: number;
  /** From the sample, at most 20; so are the types. */
  readonly sources: readonly string[];
  readonly types: readonly string[];
  /** Size of the sample: the newest dead letters; all of a small group. */
  readonly sampled: number;
  /** When the first of them became a dead letter. */
  readonly firstFailedAt: string | null;
  readonly lastFailedAt: string | null;
  /** The newest event of the group. */
  readonly exampleId: string;
  /** Its original error. */
  readonly example: string;
  /** HTTP status in the error. */
  readonly status: number | null;
  /** From the sample. */
  readonly destinations: readonly string[];
  /** New dead letters in each of 24 equal spans from the first to the last. */
  readonly histogram: readonly number[];
}

/** Discard dead letters permanently: a single id at once, everything else as a plan. */
export interface DiscardDeadLettersRequest {
  /** schema.table. */
  readonly source?: string | undefined;
  /** `*` matches any characters. */
  readonly type?: string | undefined;
  readonly key?: string | undefined;
  /** Fingerprints of errors, or prefixes of them, separated by commas. */
  readonly group?: string | undefined;
  /** Ids of events. */
  readonly ids?: readonly string[] | undefined;
  /** Selects every open dead letter. Required where neither ids nor a filter is given. */
  readonly all?: boolean | undefined;
  /** Report what would change, without changing anything. */
  readonly dryRun?: boolean | undefined;
  /** Who requested it, for the audit. */
  readonly by?: string | undefined;
  /** The reason, for the audit. */
  readonly reason: string;
}

/** Discard permanently the dead letter that blocks a key. */
export interface DiscardKeyRequest {
  /** Name of the pipeline, as in GET /api/v1/pipelines. */
  readonly pipeline: string;
  readonly key: string;
  /** The reason, for the audit. */
  readonly reason: string;
}

export interface Edit {
  readonly id: string;
  readonly at: string;
  readonly pipeline: string;
  readonly by: string;
  readonly reason: string | null;
  /** The plan whose patch made the edit; null for an edit by hand. */
  readonly plan: string | null;
  readonly before: {
    readonly headers: Readonly<Record<string, string>>;
    readonly payload: Payload | null;
  };
  readonly after: {
    readonly headers: Readonly<Record<string, string>>;
    readonly payload: Payload | null;
  };
}

/** Replace the payload of a dead letter, and replay it. */
export interface EditDeadLetterRequest {
  readonly id: string;
  readonly payload: {
    readonly encoding: "utf-8" | "base64";
    readonly text: string;
  };
  /** Unchanged when absent. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** schema.table. */
  readonly source?: string | undefined;
  /** The reason, for the audit. */
  readonly reason: string;
}

export interface FailedAttempt {
  readonly at: string;
  readonly attempt: number;
  readonly reason: string;
}

/** Remove a pipeline that is no longer configured, with its progress and dead letters. */
export interface ForgetPipelineRequest {
  /** Full name of the pipeline, such as schema.table->destination. */
  readonly name: string;
  /** Report what would be lost, without changing anything. */
  readonly dryRun?: boolean | undefined;
  /** Also remove a pipeline with undelivered events. They are never delivered then. */
  readonly giveUpEvents?: boolean | undefined;
  /** The reason, for the audit. */
  readonly reason?: string | undefined;
}

export interface ForgottenPipeline {
  readonly pipeline: string;
  readonly kind: "queue" | "log";
  /** Instances that serve the pipeline. It cannot be removed while there are any. */
  readonly servedBy: readonly string[];
  /** Dead letters that are discarded; their copies stay. */
  readonly deadLetters: number;
  readonly retrying: number;
  /** Undelivered events of a log; null when they cannot be counted. */
  readonly undelivered: number | null;
  /** Replication slot that is dropped. */
  readonly slot: string | null;
  /** What is lost, in words. */
  readonly givenUp: readonly string[];
  readonly isDone: boolean;
}

export interface GroupDeadLettersAnswer {
  readonly groups: readonly DeadLetterGroup[];
}

/** Dead letters grouped by normalized error. */
export interface GroupDeadLettersRequest {
  /** Filter language: type:order.* key:42 state:dead age:<1h. A bare word matches an id, a key, a correlation id or a part of a key. */
  readonly q?: string | undefined;
  /** schema.table. */
  readonly source?: string | undefined;
  /** `*` matches any characters. */
  readonly type?: string | undefined;
  readonly key?: string | undefined;
  /** Fingerprints of errors, or prefixes of them, separated by commas. */
  readonly group?: string | undefined;
}

export interface HealthCause {
  readonly code:
    | "database-unreachable"
    | "polls-stopped"
    | "not-polled-yet"
    | "not-counted-yet"
    | "no-table-yet"
    | "source-broken"
    | "source-warning"
    | "circuit-open"
    | "destination-unreachable"
    | "destination-slow"
    | "destination-paused"
    | "pipeline-paused"
    | "pipeline-stalled"
    | "lane-braked"
    | "lane-failing"
    | "chore-failed"
    | "upkeep-failed"
    | "dead-letters"
    | "keys-parked"
    | "types-untaken"
    | "pipeline-late"
    | "pipeline-unserved"
    | "count-failed"
    | "requests-trouble"
    | "notifications-failing";
  readonly grade: "attention" | "degraded" | "down";
  readonly pipeline: string | null;
  readonly source: string | null;
  readonly destination: string | null;
  /** What is wrong. */
  readonly what: string;
  readonly fix: string | null;
  readonly since: string | null;
  /** Path of the console's screen that handles it. */
  readonly link: string;
  /** Chapter of the documentation; absent where fix is enough. */
  readonly runbook?: string | undefined;
}

export interface KeyOfEvents {
  readonly pipeline: string;
  readonly source: string;
  readonly key: string;
  readonly kind: "parked" | "retrying" | "hot";
  /** The event that blocks the key; null for a hot key that is not blocked. */
  readonly head: {
    readonly id: string;
    readonly type: string | null;
    readonly state: "retrying" | "suspect" | "dead";
    readonly attempts: number;
    readonly reason: string;
    readonly firstFailedAt: string | null;
    readonly nextAttemptAt: string | null;
  } | null;
  /** Events that wait behind it; null when the count timed out. A log may have more that are not read yet. */
  readonly waiting: {
    readonly count: number;
    readonly isMore: boolean;
  } | null;
  /** How many of the newest events of the source have this key; null unless hot keys were requested. */
  readonly recent: {
    readonly count: number;
    readonly of: number;
  } | null;
}

export interface KnownDestination {
  readonly destination: string;
  readonly pipelines: readonly string[];
  /** Applies to all pipelines of the destination, including future ones. */
  readonly pause: {
    readonly at: string;
    readonly by: string;
    readonly reason: string | null;
  } | null;
  /** Per pipeline and instance; the rates add up. */
  readonly limit: {
    readonly perSecond: number;
    readonly by: string | null;
    readonly reason: string | null;
  } | null;
}

export interface Lane {
  readonly pipeline: string;
  readonly lane: number;
  readonly owner: {
    readonly id: string;
    readonly name: string | null;
    readonly isAlive: boolean;
  } | null;
  readonly epoch: string;
  readonly settledBatch: string;
  readonly crashes: number;
  readonly published: string;
  readonly settledAt: string | null;
}

/** Rate limit per instance for each pipeline of the destination, in events per second; null removes it. */
export interface LimitDestinationRequest {
  /** Name of a destination, as in the routes. */
  readonly name: string;
  readonly perSecond: number | null;
  /** The reason, for the audit. */
  readonly reason?: string | undefined;
}

/** Rate limit per instance in events per second; null removes it. */
export interface LimitPipelineRequest {
  /** Name of a pipeline, a source such as schema.table, or a schema. */
  readonly name: string;
  readonly perSecond: number | null;
  /** The reason, for the audit. */
  readonly reason?: string | undefined;
}

export interface ListAuditAnswer {
  readonly entries: readonly AuditEntry[];
  readonly cursor: string | null;
}

/** Audit log, newest first. Entries for single events of a plan appear only with an eventId or an action. */
export interface ListAuditRequest {
  readonly limit?: number | undefined;
  /** The cursor of the previous page. */
  readonly cursor?: string | undefined;
  readonly actor?: string | undefined;
  readonly action?: string | undefined;
  /** The target of the action: a pipeline, a source, a plan or a key. */
  readonly target?: string | undefined;
  readonly eventId?: string | undefined;
  /** At or after this time: 2026-01-31, 2026-01-31T12:00 in UTC, or 15m, 2h, 1d for ago. */
  readonly since?: string | undefined;
  /** Before this time, in the same format. */
  readonly until?: string | undefined;
}

export interface ListDeadLettersAnswer {
  readonly deadLetters: readonly DeadLetter[];
  readonly cursor: string | null;
}

/** Dead letters, newest first. */
export interface ListDeadLettersRequest {
  readonly limit?: number | undefined;
  /** The cursor of the previous page. */
  readonly cursor?: string | undefined;
  /** Filter language: type:order.* key:42 state:dead age:<1h. A bare word matches an id, a key, a correlation id or a part of a key. */
  readonly q?: string | undefined;
  /** schema.table. */
  readonly source?: string | undefined;
  /** `*` matches any characters. */
  readonly type?: string | undefined;
  readonly key?: string | undefined;
  /** Fingerprints of errors, or prefixes of them, separated by commas. */
  readonly group?: string | undefined;
  readonly resolved?: boolean | undefined;
}

export interface ListDestinationsAnswer {
  readonly destinations: readonly KnownDestination[];
}

export interface ListedEvent {
  readonly source: string;
  readonly id: string;
  readonly type: string;
  readonly key: string | null;
  readonly correlationId: string | null;
  readonly createdAt: string | null;
  readonly state: "pending" | "retrying" | "parked" | "dead" | "unrouted" | "delivered" | "discarded";
  /** Number of failures so far; null without a failure. */
  readonly attempts: number | null;
  readonly reason: string | null;
  readonly nextAttemptAt: string | null;
  /** The event that this one waits for. */
  readonly parkedBehind: string | null;
  /** The pipeline whose route matches it now; null when none does, in a log, and when it is unknown. */
  readonly pipeline: string | null;
  /** What it waits for besides earlier events: its pipeline is paused, or it is scheduled for nextAttemptAt. */
  readonly waitsFor: "paused" | "scheduled" | null;
}

export interface ListEventsAnswer {
  readonly events: readonly ListedEvent[];
  /** Cursor of the next page; null at the end. */
  readonly cursor: string | null;
  readonly broken: readonly {
    readonly source: string;
    readonly reason: string;
  }[];
  /** A filter that also searches payloads for the bare word; set when few events matched without. */
  readonly also: string | null;
  /** How far back a search without an index came before its time limit. */
  readonly covered: readonly {
    readonly source: string;
    readonly upTo: string | null;
    readonly isComplete: boolean;
    /** Number of the newest rows that were searched, over all pages so far; null where unknown. */
    readonly looked: number | null;
    /** Estimated number of rows of the source. */
    readonly total: number | null;
  }[];
}

/** Events of all sources, newest first. */
export interface ListEventsRequest {
  readonly limit?: number | undefined;
  /** The cursor of the previous page. */
  readonly cursor?: string | undefined;
  /** Filter language: type:order.* key:42 state:dead age:<1h. A bare word matches an id, a key, a correlation id or a part of a key. */
  readonly q?: string | undefined;
  /** schema.table. */
  readonly source?: string | undefined;
  /** `*` matches any characters. */
  readonly type?: string | undefined;
  readonly key?: string | undefined;
  readonly correlationId?: string | undefined;
  readonly id?: string | undefined;
  readonly state?: "pending" | "retrying" | "parked" | "dead" | "unrouted" | "delivered" | "discarded" | undefined;
  readonly since?: string | undefined;
  readonly until?: string | undefined;
}

export interface ListKeysAnswer {
  readonly keys: readonly KeyOfEvents[];
  readonly cursor: string | null;
}

/** Blocked keys with the event that blocks them, or the keys with the most events. */
export interface ListKeysRequest {
  readonly limit?: number | undefined;
  /** The cursor of the previous page. */
  readonly cursor?: string | undefined;
  /** parked: blocked by a dead letter. retrying: blocked by an event that is retried. hot: many events. Default: parked and retrying. */
  readonly kind?: "parked" | "retrying" | "hot" | undefined;
  /** Name of the pipeline, as in GET /api/v1/pipelines. */
  readonly pipeline?: string | undefined;
  /** Keys that contain this text, ignoring case. */
  readonly q?: string | undefined;
}

export interface ListLanesAnswer {
  readonly lanes: readonly Lane[];
}

export interface ListPipelinesAnswer {
  readonly pipelines: readonly Pipeline[];
}

export interface ListReplayItemsAnswer {
  readonly items: readonly ReplayItem[];
  readonly cursor: string | null;
}

/** Events of a plan, in the order of their replay. */
export interface ListReplayItemsRequest {
  /** Id of the plan. */
  readonly id: string;
  readonly limit?: number | undefined;
  /** The cursor of the previous page. */
  readonly cursor?: string | undefined;
  readonly state?: "waiting" | "sent" | "done" | "failed" | "left" | undefined;
}

export interface ListReplaysAnswer {
  readonly plans: readonly ReplayPlan[];
  readonly cursor: string | null;
}

/** Replay plans, newest first. */
export interface ListReplaysRequest {
  readonly limit?: number | undefined;
  /** The cursor of the previous page. */
  readonly cursor?: string | undefined;
  readonly state?: "planned" | "running" | "paused" | "stopped" | "done" | "cancelled" | undefined;
  readonly action?: "replay" | "discard" | undefined;
  /** Text in the id, filter, reason or author of a plan, ignoring case. */
  readonly q?: string | undefined;
}

export interface ListSourcesAnswer {
  readonly sources: readonly {
    readonly source: string;
    readonly pipelines: readonly string[];
  }[];
  readonly broken: readonly {
    readonly source: string;
    readonly reason: string;
  }[];
}

export interface PatchExample {
  readonly id: string;
  readonly type: string;
  readonly source: string;
  readonly pipeline: string;
  readonly before: Payload;
  /** Null when the payload cannot be patched; the event is skipped then. */
  readonly after: Payload | null;
  readonly problem: string | null;
}

/** Pause every pipeline of the destination, including future ones; events in flight are finished. */
export interface PauseDestinationRequest {
  /** Name of a destination, as in the routes. */
  readonly name: string;
  /** Who requested it, for the audit. */
  readonly by?: string | undefined;
  /** The reason, for the audit. */
  readonly reason?: string | undefined;
}

/** Pause the delivery; events in flight are finished. */
export interface PausePipelineRequest {
  /** Name of a pipeline, a source such as schema.table, or a schema. */
  readonly name: string;
  /** Who requested it, for the audit. */
  readonly by?: string | undefined;
  /** The reason, for the audit. */
  readonly reason?: string | undefined;
}

/** Pause a plan; events that are already sent are finished. */
export interface PauseReplayRequest {
  /** Id of the plan. */
  readonly id: string;
  /** The reason, for the audit. */
  readonly reason?: string | undefined;
}

export interface Payload {
  readonly encoding: "utf-8" | "base64";
  readonly text: string;
  readonly bytes: number;
  readonly isTruncated: boolean;
}

export interface Pipeline {
  readonly pipeline: string;
  readonly source: string;
  readonly schema: string;
  readonly table: string;
  readonly destination: string;
  readonly delivery: "exactly-once" | "at-least-once";
  readonly lanes: number;
  readonly pause: {
    readonly at: string;
    readonly by: string;
    readonly reason: string | null;
    readonly lanesWanted: number | null;
  } | null;
  /** Rate limit per instance in events per second, set by an operator. */
  readonly limit: {
    readonly perSecond: number;
    readonly by: string | null;
    readonly reason: string | null;
  } | null;
  readonly log: "managed" | "tail" | "wal" | null;
  readonly subscriber: string | null;
}

/** Create a plan: freeze the list of matching events without changing them. */
export interface PlanReplayRequest {
  readonly action?: "replay" | "discard" | undefined;
  readonly subject?: "dead" | "delivered" | undefined;
  /** Filter language: type:order.* since:2026-01-31. */
  readonly q?: string | undefined;
  /** Ids of events. */
  readonly ids?: readonly string[] | undefined;
  /** Selects every open dead letter. Required where neither ids nor a filter is given. */
  readonly all?: boolean | undefined;
  /** Required for delivered events where several pipelines read their source. */
  readonly pipeline?: string | undefined;
  /** Rate limit in events per second. */
  readonly ratePerSecond?: number | undefined;
  /** Dead letters only: a JSON merge patch (RFC 7396) for each payload, such as {"customer": {"id": "4711"}}. */
  readonly patch?: string | undefined;
  /** The reason, for the audit. */
  readonly reason?: string | undefined;
}

export interface PlanStratum {
  /** Null for the combined stratum of all small ones. */
  readonly destination: string | null;
  readonly type: string | null;
  /** Fingerprint of the error; null for delivered events. */
  readonly group: string | null;
  readonly error: string | null;
  readonly count: number;
  readonly sent: number;
  readonly done: number;
  readonly failed: number;
  readonly left: number;
  /** Delivered since the last start of the plan. */
  readonly passed: number;
  /** Why the plan stopped replaying this stratum. */
  readonly failure: string | null;
}

export interface PreviewPatchAnswer {
  readonly examples: readonly PatchExample[];
}

/** Preview of a plan's patch on some of its events, without changing anything. */
export interface PreviewPatchRequest {
  /** Id of the plan. */
  readonly id: string;
}

/** Replay dead letters: a single id at once, everything else as a plan with a canary. */
export interface ReplayDeadLettersRequest {
  /** schema.table. */
  readonly source?: string | undefined;
  /** `*` matches any characters. */
  readonly type?: string | undefined;
  readonly key?: string | undefined;
  /** Fingerprints of errors, or prefixes of them, separated by commas. */
  readonly group?: string | undefined;
  /** Ids of events. */
  readonly ids?: readonly string[] | undefined;
  /** Selects every open dead letter. Required where neither ids nor a filter is given. */
  readonly all?: boolean | undefined;
  /** Report what would change, without changing anything. */
  readonly dryRun?: boolean | undefined;
  /** Who requested it, for the audit. */
  readonly by?: string | undefined;
  /** The reason, for the audit. */
  readonly reason?: string | undefined;
}

export interface ReplayItem {
  readonly seq: string;
  readonly pipeline: string;
  readonly source: string;
  readonly id: string;
  readonly type: string;
  readonly key: string | null;
  readonly state: "waiting" | "sent" | "done" | "failed" | "left";
  readonly reason: string | null;
  readonly changedAt: string | null;
}

export interface ReplayPlan {
  readonly id: string;
  readonly action: "replay" | "discard";
  readonly subject: "dead" | "delivered";
  /** The filter that selected the events. */
  readonly filter: string;
  readonly state: "planned" | "running" | "paused" | "stopped" | "done" | "cancelled";
  /** First one event of each stratum, then ten of each, then the rest. */
  readonly stage: "first" | "ten" | "rest";
  readonly ratePerSecond: number | null;
  /** JSON merge patch for each payload; null without one, and without the right to see payloads. */
  readonly patch: string | null;
  readonly count: number;
  readonly keys: number;
  readonly byType: Readonly<Record<string, number>>;
  readonly bySource: Readonly<Record<string, number>>;
  readonly byError: Readonly<Record<string, number>>;
  readonly warnings: readonly string[];
  readonly progress: {
    readonly waiting: number;
    /** Released, and not yet delivered. */
    readonly sent: number;
    readonly done: number;
    readonly failed: number;
    /** Skipped, because they had changed since the plan was created. */
    readonly left: number;
  };
  /** By destination, error and type, largest first. A replay starts with one event of each. */
  readonly strata: readonly PlanStratum[];
  readonly createdAt: string;
  readonly createdBy: string;
  readonly reason: string | null;
  readonly startedAt: string | null;
  readonly startedBy: string | null;
  readonly finishedAt: string | null;
  readonly stopReason: string | null;
  /** Whether a process is working on it. */
  readonly isServed: boolean;
}

/** Resume every pipeline of the destination. */
export interface ResumeDestinationRequest {
  /** Name of a destination, as in the routes. */
  readonly name: string;
}

/** Retry now all failed events of a key, in order. */
export interface ResumeKeyRequest {
  /** Name of the pipeline, as in GET /api/v1/pipelines. */
  readonly pipeline: string;
  readonly key: string;
  /** The reason, for the audit. */
  readonly reason?: string | undefined;
}

/** Resume the delivery. */
export interface ResumePipelineRequest {
  /** Name of a pipeline, a source such as schema.table, or a schema. */
  readonly name: string;
}

/** Retry now the event that blocks a key. */
export interface RetryKeyRequest {
  /** Name of the pipeline, as in GET /api/v1/pipelines. */
  readonly pipeline: string;
  readonly key: string;
  /** The reason, for the audit. */
  readonly reason?: string | undefined;
}

/** Run a plan: one event of each stratum, then ten of each, then the rest. It stops when an event fails again. */
export interface RunReplayRequest {
  /** Id of the plan. */
  readonly id: string;
  /** The reason, for the audit. */
  readonly reason?: string | undefined;
  /** Exclude the strata that failed, and continue with the others. */
  readonly skipFailed?: boolean | undefined;
}

/** History of all events of a correlation id, across sources and destinations. */
export interface ShowCorrelationRequest {
  readonly id: string;
}

export interface ShowDeadLetterAnswer {
  readonly deadLetters: readonly ShownDeadLetter[];
}

/** Dead letters of one event with the error of every attempt, including resolved ones. */
export interface ShowDeadLetterRequest {
  readonly id: string;
  /** schema.table. */
  readonly source?: string | undefined;
}

/** One event with payload, headers, state and every failed attempt. */
export interface ShowEventRequest {
  readonly id: string;
  /** schema.table. */
  readonly source?: string | undefined;
}

export interface ShownDeadLetter {
  readonly letterId: string;
  readonly source: string;
  readonly pipeline: string;
  readonly id: string;
  readonly type: string;
  readonly key: string | null;
  readonly correlationId: string | null;
  readonly reason: string;
  readonly group: string;
  readonly failures: number;
  readonly firstFailedAt: string | null;
  readonly lastFailedAt: string | null;
  readonly resolution: {
    readonly how: "replayed" | "discarded";
    readonly at: string;
    readonly by: string | null;
    readonly reason: string | null;
  } | null;
  readonly headers: Readonly<Record<string, string>>;
  /** Null without the right to see payloads. */
  readonly payload: Payload | null;
  readonly createdAt: string | null;
  readonly errors: readonly FailedAttempt[];
}

export interface ShownEvent {
  readonly source: string;
  readonly id: string;
  readonly type: string;
  readonly key: string | null;
  readonly correlationId: string | null;
  readonly createdAt: string | null;
  readonly state: "pending" | "retrying" | "parked" | "dead" | "unrouted" | "delivered" | "discarded";
  /** Number of failures so far; null without a failure. */
  readonly attempts: number | null;
  readonly reason: string | null;
  readonly nextAttemptAt: string | null;
  /** The event that this one waits for. */
  readonly parkedBehind: string | null;
  /** The pipeline whose route matches it now; null when none does, in a log, and when it is unknown. */
  readonly pipeline: string | null;
  /** What it waits for besides earlier events: its pipeline is paused, or it is scheduled for nextAttemptAt. */
  readonly waitsFor: "paused" | "scheduled" | null;
  readonly headers: Readonly<Record<string, string>>;
  /** Null without the right to see payloads, and when no copy exists any more. */
  readonly payload: Payload | null;
  readonly hold: {
    readonly pipeline: string;
    readonly lane: number;
    readonly state: string;
    readonly parks: boolean;
    readonly attempts: number;
    readonly firstFailedAt: string | null;
    readonly lastFailedAt: string | null;
    readonly errors: readonly FailedAttempt[];
  } | null;
  readonly followers: {
    readonly count: number;
    readonly isMore: boolean;
  } | null;
  readonly pipelines: readonly string[];
  /** Recorded attempts, oldest first. */
  readonly delivery: readonly Attempt[];
  /** Actions of operators on the event. */
  readonly audit: readonly AuditEntry[];
  /** Edits of payload and headers, newest first; kept for 30 days. */
  readonly edits: readonly Edit[];
  /** Link to the trace, built from TRACE_URL; null where it is not configured. */
  readonly traceUrl: string | null;
  /** Id of the open dead letter; null without one. */
  readonly letterId: string | null;
  /** The event's row is gone: these are the relay's own records. */
  readonly isGone: boolean;
}

/** One replay plan with its progress. */
export interface ShowReplayRequest {
  /** Id of the plan. */
  readonly id: string;
}

/** Skip the dead letter that blocks a key: the key continues, the dead letter stays. */
export interface SkipKeyRequest {
  /** Name of the pipeline, as in GET /api/v1/pipelines. */
  readonly pipeline: string;
  readonly key: string;
  /** The reason, for the audit. */
  readonly reason: string;
}

export interface StartedDeadLetterChange {
  readonly plan: DeadLetterChangePlan;
  /** The started plan: GET /api/v1/replays/{id} shows its progress. */
  readonly replay: ReplayPlan;
  /** Ids without an open dead letter. */
  readonly unknown: readonly string[];
}

export interface Status {
  readonly relaySchema: string;
  readonly schemaVersion: number;
  readonly pipelines: readonly {
    readonly pipeline: string;
    readonly source: string;
    readonly schema: string;
    readonly table: string;
    readonly destination: string;
    readonly delivery: "exactly-once" | "at-least-once";
    readonly lanes: number;
    readonly pause: {
      readonly at: string;
      readonly by: string;
      readonly reason: string | null;
      readonly lanesWanted: number | null;
    } | null;
    /** Rate limit per instance in events per second, set by an operator. */
    readonly limit: {
      readonly perSecond: number;
      readonly by: string | null;
      readonly reason: string | null;
    } | null;
    readonly log: "managed" | "tail" | "wal" | null;
    readonly subscriber: string | null;
    readonly state: "running" | "paused" | "broken" | "not served" | "no longer configured";
    readonly isServed: boolean;
    readonly ownedLanes: number;
    readonly freeLanes: number;
    readonly pending: number | null;
    readonly isEstimate: boolean;
    readonly oldestAgeMs: number | null;
    /** Events that wait behind a dead letter of their key. */
    readonly behindDeadLetters: number | null;
    readonly countProblem: string | null;
    readonly retrying: number;
    readonly parkedKeys: number;
    readonly deadLetters: number;
  }[];
  /** Tables with events that no route matches. */
  readonly unrouted: readonly {
    readonly source: string;
    readonly events: number;
    readonly isEstimate: boolean;
    readonly oldestAgeMs: number | null;
  }[];
  readonly instances: readonly {
    readonly id: string;
    readonly name: string;
    readonly joinedAt: string;
    readonly leaseRemainingMs: number;
    readonly pipelines: readonly string[];
    readonly lanes: number;
  }[];
  /** attention: delivery works, but an operator should act; degraded: a part cannot work; down: nothing works. */
  readonly grade: "ok" | "attention" | "degraded" | "down";
  readonly causes: readonly HealthCause[];
  readonly problems: readonly string[];
}

export interface Stratum {
  /** Null for the combined stratum of all small ones. */
  readonly destination: string | null;
  readonly type: string | null;
  /** Fingerprint of the error; null for delivered events. */
  readonly group: string | null;
  readonly error: string | null;
  readonly count: number;
}
