/** The names by default; a stack that has several outboxes gives each its own. */
export const TABLES = { outbox: "outbox", deadLetters: "outbox-dead-letters" } as const;

/** Where a function is told the names of its tables. */
export const TABLE_VARIABLES = { outbox: "DYNAMODB_OUTBOX", deadLetters: "DYNAMODB_DEAD_LETTERS" } as const;

/** The partition key of both tables, a text: the intent's id, which is the idempotency key. */
export const PARTITION_KEY = "id";

/** Of both tables: new intents wake their relay, new dead letters whoever watches them. */
export const STREAM_VIEW = "NEW_AND_OLD_IMAGES";

/** Seconds since 1970 after which a delivered intent may be deleted, where time to live is switched on for it. */
export const TTL_ATTRIBUTE = "expires_at";

export interface TableIndex {
  readonly name: string;
  /** Texts, both of them. */
  readonly partitionKey: string;
  readonly sortKey: string;
  readonly projection: "KEYS_ONLY";
}

/** Of the outbox: what is not delivered yet, by type, the longest overdue first. A delivered intent is not in it. */
export const RETRIES_INDEX: TableIndex = {
  name: "retries",
  partitionKey: "retry_type",
  sortKey: "retry_at",
  projection: "KEYS_ONLY",
};

/** Of the dead letters: by type, the oldest first. */
export const DEAD_LETTERS_INDEX: TableIndex = {
  name: "by-type",
  partitionKey: "intent_type",
  sortKey: "dead_at",
  projection: "KEYS_ONLY",
};

export interface TableNames {
  readonly table: string;
  readonly deadLetterTable: string;
}
