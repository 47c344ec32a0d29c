export { exponential, type RetryPolicy, schedule } from "./core/retry-policy.ts";
export type { EventLog, LoggedEvent, NewLoggedEvent } from "./ports/event-log.ts";
export { FinalFailure, RetryLater } from "./worker/failures.ts";
export { type RequestWorker, requestWorker } from "./worker/request-worker.ts";
export type { WorkerLogLine, WorkerSample } from "./worker/worker-log.ts";
export type {
  ExecuteContext,
  FoundRequest,
  RecordedOutcome,
  RequestWorkerOptions,
} from "./worker/worker-options.ts";
