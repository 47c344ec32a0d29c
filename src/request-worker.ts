export {
  type ExponentialRetryOptions,
  exponentialRetry,
  type RetryPolicy,
  scheduledRetry,
} from "./core/retry-policy.ts";
export type { EventLog, LoggedEvent, LogItem, LogStart, NewLoggedEvent, Subscription } from "./ports/event-log.ts";
export { FinalFailure, RetryLater } from "./worker/failures.ts";
export type { OutcomeTypes } from "./worker/request-view.ts";
export { type RequestWorker, requestWorker } from "./worker/request-worker.ts";
export type { RedisPlace } from "./worker/worker-clients.ts";
export type { WorkerLogLine, WorkerLogOutcome, WorkerSample } from "./worker/worker-log.ts";
export type {
  ExecuteContext,
  FoundRequest,
  RecordedOutcome,
  RequestWorkerOptions,
} from "./worker/worker-options.ts";
