import { setting } from "./setting.ts";
import { duration, matching, text } from "./value-types.ts";

const TABLE = matching(/^[a-zA-Z0-9._-]{3,255}$/, 'letters, digits, ".", "_" and "-" only, at least 3 of them');

/** Keys, profile and role are found by the SDK itself, in its own variables and files. */
export const dynamodbSettings = {
  AWS_REGION: setting(
    "dynamodb.region",
    text(100).optional(),
    "The region of the tables, such as eu-central-1; what the SDK finds by default",
  ),
  DYNAMODB_ENDPOINT: setting(
    "dynamodb.endpoint",
    text().optional(),
    "A server of one's own in the place of Amazon's, such as http://localhost:8000",
    { aliases: ["AWS_ENDPOINT_URL_DYNAMODB"] },
  ),
  OUTBOX_DYNAMODB_TABLE: setting("dynamodb.table", TABLE.default("outbox"), "The table of the intents", {
    aliases: ["DYNAMODB_OUTBOX"],
  }),
  OUTBOX_DYNAMODB_DEAD_LETTERS: setting(
    "dynamodb.deadLetters",
    TABLE.optional(),
    "The table of their dead letters; that of the intents with -dead-letters behind its name by default",
    { aliases: ["DYNAMODB_DEAD_LETTERS"] },
  ),
  OUTBOX_DYNAMODB_CHECKPOINTS: setting(
    "dynamodb.checkpoints",
    TABLE.default("outbox-relay-checkpoints"),
    "The table in which `dynamodb run` notes how far each relay has read the stream",
  ),
  OUTBOX_DYNAMODB_TIMEOUT: setting(
    "dynamodb.timeout",
    duration({ minMs: 1_000, maxMs: 900_000 }).default(30_000),
    "What one call of a relay may take in `dynamodb run`, as a function's timeout in AWS",
  ),
  OUTBOX_DYNAMODB_SWEEP_INTERVAL: setting(
    "dynamodb.sweepInterval",
    duration({ minMs: 100, maxMs: 3_600_000 }).default(5_000),
    "The time between two looks of `dynamodb run` for retries that are due",
  ),
};
