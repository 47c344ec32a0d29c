export type { DeadLetters } from "./dynamodb/dead-letters.ts";
export type { DynamoDbConnection } from "./dynamodb/dynamodb-link.ts";
export type { DynamoDbOutbox } from "./dynamodb/dynamodb-outbox.ts";
export type { IntentFailure } from "./dynamodb/failure-history.ts";
export type { DeadLetter, DynamoDbItem, IntentRecord, NewIntent } from "./dynamodb/intent-record.ts";
export type { IntentClaim, IntentState, IntentWrite } from "./dynamodb/intent-state.ts";
export type { IntentWriter } from "./dynamodb/intent-writer.ts";
export type { TableNames } from "./dynamodb/tables.ts";
export { type FilterPattern, type FilterRule, type FilterScalar, streamFilter } from "./lambda/filter-pattern.ts";
export { type IntentHandler, type IntentHandlerOptions, intentHandler } from "./lambda/intent-handler.ts";
export type { ReportEvent } from "./lambda/intent-reports.ts";
export type {
  BatchResponse,
  IntentEvent,
  LambdaContext,
  StreamAttribute,
  StreamRecord,
} from "./lambda/lambda-events.ts";
