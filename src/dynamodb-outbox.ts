export { type DynamoDbOutbox, type DynamoDbOutboxOptions, dynamodbOutbox } from "./dynamodb/dynamodb-outbox.ts";
export type { DeadLetter, IntentRecord, NewIntent } from "./dynamodb/intent-record.ts";
export {
  createTables,
  DEAD_LETTERS_INDEX,
  PARTITION_KEY,
  RETRIES_INDEX,
  STREAM_VIEW,
  TABLE_VARIABLES,
  TABLES,
  TTL_ATTRIBUTE,
} from "./dynamodb/tables.ts";
