/** The default names. A stack with several outboxes needs a name for each. */
export const TABLES = { outbox: "outbox", deadLetters: "outbox-dead-letters" } as const;

/** The environment variables that name a function's tables. */
export const TABLE_VARIABLES = { outbox: "DYNAMODB_OUTBOX", deadLetters: "DYNAMODB_DEAD_LETTERS" } as const;

/** The partition key of both tables, a string: the intent's id, which is the idempotency key. */
export const PARTITION_KEY = "id";

/** The stream of both tables: new intents wake their relay, new dead letters can trigger alerts. */
export const STREAM_VIEW = "NEW_AND_OLD_IMAGES";

/**
 * Seconds since 1970 after which DynamoDB may delete a delivered intent, if time to live is enabled for this attribute.
 */
export const TTL_ATTRIBUTE = "expires_at";

/** A global secondary index. */
export interface TableIndex {
  readonly name: string;
  /** Both keys are strings. */
  readonly partitionKey: string;
  readonly sortKey: string;
  readonly projection: "KEYS_ONLY";
}

/** The outbox's index: undelivered intents by type, the longest overdue first. Delivered intents are not in it. */
export const RETRIES_INDEX: TableIndex = {
  name: "retries",
  partitionKey: "retry_type",
  sortKey: "retry_at",
  projection: "KEYS_ONLY",
};

/** The dead-letter table's index: by type, oldest first. */
export const DEAD_LETTERS_INDEX: TableIndex = {
  name: "by-type",
  partitionKey: "intent_type",
  sortKey: "dead_at",
  projection: "KEYS_ONLY",
};

/** The names of an outbox's two tables. */
export interface TableNames {
  readonly table: string;
  readonly deadLetterTable: string;
}
