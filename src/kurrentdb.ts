export type {
  EventLog,
  LoggedEvent,
  LogItem,
  LogStart,
  NewLoggedEvent,
  Subscription,
} from "./ports/event-log.ts";
export type * from "./ports/request-queue.ts";
export {
  createRequestRelay,
  type RequestContextOptions,
  type RequestRelayOptions,
  type RunningRequestRelay,
} from "./requests/create-request-relay.ts";
export type { RequestFailure, RequestListener, RequestState, SkipReason } from "./requests/request-listener.ts";
export type { KurrentDbCredentials } from "./sources/kurrentdb/kurrentdb-address.ts";
export { type CheckpointLog, CheckpointStream } from "./sources/kurrentdb/kurrentdb-checkpoint.ts";
export { type KurrentDbLogOptions, kurrentdbLog } from "./sources/kurrentdb/kurrentdb-source.ts";
export type { KurrentDbWay } from "./sources/kurrentdb/kurrentdb-streams.ts";
