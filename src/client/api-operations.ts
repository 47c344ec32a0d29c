// Made by `npm run generate` from the routes and schemas of src/http.
import type {
  CancelReplayRequest,
  ChangedEvents,
  ChangedPipelines,
  ChangeKeysAnswer,
  ChangeKeysRequest,
  ChangePipelinesRequest,
  Correlation,
  DeadLetterChange,
  DiscardDeadLettersRequest,
  DiscardKeyRequest,
  EditDeadLetterRequest,
  ForgetPipelineRequest,
  ForgottenPipeline,
  GroupDeadLettersAnswer,
  GroupDeadLettersRequest,
  LimitDestinationRequest,
  LimitPipelineRequest,
  ListAuditAnswer,
  ListAuditRequest,
  ListDeadLettersAnswer,
  ListDeadLettersRequest,
  ListDestinationsAnswer,
  ListEventsAnswer,
  ListEventsRequest,
  ListKeysAnswer,
  ListKeysRequest,
  ListLanesAnswer,
  ListPipelinesAnswer,
  ListReplayItemsAnswer,
  ListReplayItemsRequest,
  ListReplaysAnswer,
  ListReplaysRequest,
  ListSourcesAnswer,
  PauseDestinationRequest,
  PausePipelineRequest,
  PauseReplayRequest,
  PlanReplayRequest,
  PreviewPatchAnswer,
  PreviewPatchRequest,
  ReplayDeadLettersRequest,
  ReplayPlan,
  ResumeDestinationRequest,
  ResumeKeyRequest,
  ResumePipelineRequest,
  RetryKeyRequest,
  RunReplayRequest,
  ShowCorrelationRequest,
  ShowDeadLetterAnswer,
  ShowDeadLetterRequest,
  ShowEventRequest,
  ShownEvent,
  ShowReplayRequest,
  SkipKeyRequest,
  StartedDeadLetterChange,
  Status,
} from "./api-types.ts";

/** Of one call. */
export interface CallOptions {
  /** Ends the call. */
  readonly signal?: AbortSignal;
}

/** Every operation of the HTTP API, by its id in the OpenAPI document. */
export interface ApiOperations {
  /** Audit log, newest first. Entries for single events of a plan appear only with an eventId or an action. Requires the role viewer. */
  listAudit(request?: ListAuditRequest, options?: CallOptions): Promise<ListAuditAnswer>;

  /** Pipelines with their backlog, lanes, and instances. Requires the role viewer. */
  status(options?: CallOptions): Promise<Status>;

  /** Pipelines with source and destination. Requires the role viewer. */
  listPipelines(options?: CallOptions): Promise<ListPipelinesAnswer>;

  /** Lanes with owner and progress. Requires the role viewer. */
  listLanes(options?: CallOptions): Promise<ListLanesAnswer>;

  /** Pause the delivery; events in flight are finished. Requires the role operator. */
  pausePipeline(request: PausePipelineRequest, options?: CallOptions): Promise<ChangedPipelines>;

  /** Resume the delivery. Requires the role operator. */
  resumePipeline(request: ResumePipelineRequest, options?: CallOptions): Promise<ChangedPipelines>;

  /** Rate limit per instance in events per second; null removes it. Requires the role operator. */
  limitPipeline(request: LimitPipelineRequest, options?: CallOptions): Promise<ChangedPipelines>;

  /** Pause, resume or limit several pipelines. Requires the role operator. */
  changePipelines(request: ChangePipelinesRequest, options?: CallOptions): Promise<ChangedPipelines>;

  /** Remove a pipeline that is no longer configured, with its progress and dead letters. Requires the role operator. */
  forgetPipeline(request: ForgetPipelineRequest, options?: CallOptions): Promise<ForgottenPipeline>;

  /** Destinations of the pipelines, with pauses and rate limits that apply to all of them. Requires the role viewer. */
  listDestinations(options?: CallOptions): Promise<ListDestinationsAnswer>;

  /** Pause every pipeline of the destination, including future ones; events in flight are finished. Requires the role operator. */
  pauseDestination(request: PauseDestinationRequest, options?: CallOptions): Promise<ChangedPipelines>;

  /** Resume every pipeline of the destination. Requires the role operator. */
  resumeDestination(request: ResumeDestinationRequest, options?: CallOptions): Promise<ChangedPipelines>;

  /** Rate limit per instance for each pipeline of the destination, in events per second; null removes it. Requires the role operator. */
  limitDestination(request: LimitDestinationRequest, options?: CallOptions): Promise<ChangedPipelines>;

  /** Tables of events, and those that cannot be read. Requires the role viewer. */
  listSources(options?: CallOptions): Promise<ListSourcesAnswer>;

  /** Events of all sources, newest first. Requires the role viewer. */
  listEvents(request?: ListEventsRequest, options?: CallOptions): Promise<ListEventsAnswer>;

  /** One event with payload, headers, state and every failed attempt. Requires the role viewer. */
  showEvent(request: ShowEventRequest, options?: CallOptions): Promise<ShownEvent>;

  /** History of all events of a correlation id, across sources and destinations. Requires the role viewer. */
  showCorrelation(request: ShowCorrelationRequest, options?: CallOptions): Promise<Correlation>;

  /** Dead letters, newest first. Requires the role viewer. */
  listDeadLetters(request?: ListDeadLettersRequest, options?: CallOptions): Promise<ListDeadLettersAnswer>;

  /** Dead letters grouped by normalized error. Requires the role viewer. */
  groupDeadLetters(request?: GroupDeadLettersRequest, options?: CallOptions): Promise<GroupDeadLettersAnswer>;

  /** Dead letters of one event with the error of every attempt, including resolved ones. Requires the role viewer. */
  showDeadLetter(request: ShowDeadLetterRequest, options?: CallOptions): Promise<ShowDeadLetterAnswer>;

  /** Replay dead letters: a single id at once, everything else as a plan with a canary. Requires the role operator. */
  replayDeadLetters(
    request?: ReplayDeadLettersRequest,
    options?: CallOptions,
  ): Promise<DeadLetterChange | StartedDeadLetterChange>;

  /** Discard dead letters permanently: a single id at once, everything else as a plan. Requires the role operator. */
  discardDeadLetters(
    request: DiscardDeadLettersRequest,
    options?: CallOptions,
  ): Promise<DeadLetterChange | StartedDeadLetterChange>;

  /** Replace the payload of a dead letter, and replay it. Requires the role operator. */
  editDeadLetter(request: EditDeadLetterRequest, options?: CallOptions): Promise<ChangedEvents>;

  /** Replay plans, newest first. Requires the role viewer. */
  listReplays(request?: ListReplaysRequest, options?: CallOptions): Promise<ListReplaysAnswer>;

  /** One replay plan with its progress. Requires the role viewer. */
  showReplay(request: ShowReplayRequest, options?: CallOptions): Promise<ReplayPlan>;

  /** Events of a plan, in the order of their replay. Requires the role viewer. */
  listReplayItems(request: ListReplayItemsRequest, options?: CallOptions): Promise<ListReplayItemsAnswer>;

  /** Preview of a plan's patch on some of its events, without changing anything. Requires the role viewer. */
  previewPatch(request: PreviewPatchRequest, options?: CallOptions): Promise<PreviewPatchAnswer>;

  /** Create a plan: freeze the list of matching events without changing them. Requires the role operator. */
  planReplay(request?: PlanReplayRequest, options?: CallOptions): Promise<ReplayPlan>;

  /** Run a plan: one event of each stratum, then ten of each, then the rest. It stops when an event fails again. Requires the role operator. */
  runReplay(request: RunReplayRequest, options?: CallOptions): Promise<ReplayPlan>;

  /** Pause a plan; events that are already sent are finished. Requires the role operator. */
  pauseReplay(request: PauseReplayRequest, options?: CallOptions): Promise<ReplayPlan>;

  /** Cancel a plan permanently; events that were not sent stay as they are. Requires the role operator. */
  cancelReplay(request: CancelReplayRequest, options?: CallOptions): Promise<ReplayPlan>;

  /** Blocked keys with the event that blocks them, or the keys with the most events. Requires the role viewer. */
  listKeys(request?: ListKeysRequest, options?: CallOptions): Promise<ListKeysAnswer>;

  /** Apply one action to several keys, independently of each other. Requires the role operator. */
  changeKeys(request: ChangeKeysRequest, options?: CallOptions): Promise<ChangeKeysAnswer>;

  /** Retry now the event that blocks a key. Requires the role operator. */
  retryKey(request: RetryKeyRequest, options?: CallOptions): Promise<ChangedEvents>;

  /** Skip the dead letter that blocks a key: the key continues, the dead letter stays. Requires the role operator. */
  skipKey(request: SkipKeyRequest, options?: CallOptions): Promise<ChangedEvents>;

  /** Retry now all failed events of a key, in order. Requires the role operator. */
  resumeKey(request: ResumeKeyRequest, options?: CallOptions): Promise<ChangedEvents>;

  /** Discard permanently the dead letter that blocks a key. Requires the role operator. */
  discardKey(request: DiscardKeyRequest, options?: CallOptions): Promise<ChangedEvents>;
}

/** Where each operation is, and which values of its request go into the body; the others go into path and query. */
export const OPERATIONS = {
  listAudit: { method: "GET", path: "/api/v1/audit", body: [], takes: true },
  status: { method: "GET", path: "/api/v1/status", body: [], takes: false },
  listPipelines: { method: "GET", path: "/api/v1/pipelines", body: [], takes: false },
  listLanes: { method: "GET", path: "/api/v1/lanes", body: [], takes: false },
  pausePipeline: { method: "POST", path: "/api/v1/pipelines/{name}/pause", body: ["by", "reason"], takes: true },
  resumePipeline: { method: "POST", path: "/api/v1/pipelines/{name}/resume", body: [], takes: true },
  limitPipeline: { method: "POST", path: "/api/v1/pipelines/{name}/limit", body: ["perSecond", "reason"], takes: true },
  changePipelines: {
    method: "POST",
    path: "/api/v1/pipelines/bulk",
    body: ["action", "pipelines", "perSecond", "reason"],
    takes: true,
  },
  forgetPipeline: {
    method: "POST",
    path: "/api/v1/pipelines/{name}/forget",
    body: ["dryRun", "giveUpEvents", "reason"],
    takes: true,
  },
  listDestinations: { method: "GET", path: "/api/v1/destinations", body: [], takes: false },
  pauseDestination: { method: "POST", path: "/api/v1/destinations/{name}/pause", body: ["by", "reason"], takes: true },
  resumeDestination: { method: "POST", path: "/api/v1/destinations/{name}/resume", body: [], takes: true },
  limitDestination: {
    method: "POST",
    path: "/api/v1/destinations/{name}/limit",
    body: ["perSecond", "reason"],
    takes: true,
  },
  listSources: { method: "GET", path: "/api/v1/sources", body: [], takes: false },
  listEvents: { method: "GET", path: "/api/v1/events", body: [], takes: true },
  showEvent: { method: "GET", path: "/api/v1/events/{id}", body: [], takes: true },
  showCorrelation: { method: "GET", path: "/api/v1/correlations/{id}", body: [], takes: true },
  listDeadLetters: { method: "GET", path: "/api/v1/dead-letters", body: [], takes: true },
  groupDeadLetters: { method: "GET", path: "/api/v1/dead-letters/groups", body: [], takes: true },
  showDeadLetter: { method: "GET", path: "/api/v1/dead-letters/{id}", body: [], takes: true },
  replayDeadLetters: {
    method: "POST",
    path: "/api/v1/dead-letters/replay",
    body: ["source", "type", "key", "group", "ids", "all", "dryRun", "by", "reason"],
    takes: true,
  },
  discardDeadLetters: {
    method: "POST",
    path: "/api/v1/dead-letters/discard",
    body: ["source", "type", "key", "group", "ids", "all", "dryRun", "by", "reason"],
    takes: true,
  },
  editDeadLetter: {
    method: "POST",
    path: "/api/v1/dead-letters/{id}/edit",
    body: ["payload", "headers", "source", "reason"],
    takes: true,
  },
  listReplays: { method: "GET", path: "/api/v1/replays", body: [], takes: true },
  showReplay: { method: "GET", path: "/api/v1/replays/{id}", body: [], takes: true },
  listReplayItems: { method: "GET", path: "/api/v1/replays/{id}/items", body: [], takes: true },
  previewPatch: { method: "GET", path: "/api/v1/replays/{id}/preview", body: [], takes: true },
  planReplay: {
    method: "POST",
    path: "/api/v1/replays",
    body: ["action", "subject", "q", "ids", "all", "pipeline", "ratePerSecond", "patch", "reason"],
    takes: true,
  },
  runReplay: { method: "POST", path: "/api/v1/replays/{id}/run", body: ["reason", "skipFailed"], takes: true },
  pauseReplay: { method: "POST", path: "/api/v1/replays/{id}/pause", body: ["reason"], takes: true },
  cancelReplay: { method: "POST", path: "/api/v1/replays/{id}/cancel", body: ["reason"], takes: true },
  listKeys: { method: "GET", path: "/api/v1/keys", body: [], takes: true },
  changeKeys: { method: "POST", path: "/api/v1/keys/bulk", body: ["action", "keys", "reason"], takes: true },
  retryKey: { method: "POST", path: "/api/v1/keys/retry", body: ["pipeline", "key", "reason"], takes: true },
  skipKey: { method: "POST", path: "/api/v1/keys/skip", body: ["pipeline", "key", "reason"], takes: true },
  resumeKey: { method: "POST", path: "/api/v1/keys/resume", body: ["pipeline", "key", "reason"], takes: true },
  discardKey: { method: "POST", path: "/api/v1/keys/discard", body: ["pipeline", "key", "reason"], takes: true },
} as const satisfies Record<keyof ApiOperations, object>;
