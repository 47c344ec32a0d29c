export type { ApiOperations, CallOptions } from "../client/api-operations.ts";
export type * from "../client/api-types.ts";
export { RelayApiError, type RelayApiErrorFacts } from "../client/relay-api-error.ts";
export type { AnswerOf, PagedOperation, RelayClient, RequestOf, WaitOptions } from "../client/relay-client.ts";
export { type OperationsOptions, openOperations, type RelayOperations } from "./open-operations.ts";
