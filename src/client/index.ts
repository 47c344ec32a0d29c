export type { ApiOperations, CallOptions } from "./api-operations.ts";
export type * from "./api-types.ts";
export type { RelayClientOptions } from "./http-call.ts";
export { RelayApiError, type RelayApiErrorFacts } from "./relay-api-error.ts";
export {
  type AnswerOf,
  createRelayClient,
  type PagedOperation,
  type RelayClient,
  type RequestOf,
  type WaitOptions,
} from "./relay-client.ts";
