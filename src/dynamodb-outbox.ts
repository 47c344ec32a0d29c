export type { DeadLetters } from "./dynamodb/dead-letters.ts";
export type { DynamoDbConnection } from "./dynamodb/dynamodb-link.ts";
export { type DynamoDbOutbox, type DynamoDbOutboxOptions, dynamodbOutbox } from "./dynamodb/dynamodb-outbox.ts";
export type { IntentFailure } from "./dynamodb/failure-history.ts";
export type { DeadLetter, DynamoDbItem, IntentRecord, NewIntent } from "./dynamodb/intent-record.ts";
export type { IntentClaim, IntentState, IntentWrite } from "./dynamodb/intent-state.ts";
export type { IntentWriter } from "./dynamodb/intent-writer.ts";
export {
  createTables,
  DEAD_LETTERS_INDEX,
  PARTITION_KEY,
  RETRIES_INDEX,
  STREAM_VIEW,
  TABLE_VARIABLES,
  TABLES,
  type TableIndex,
  type TableNames,
  TTL_ATTRIBUTE,
} from "./dynamodb/tables.ts";
