import { setting } from "./setting.ts";
import { duration, matching, text } from "./value-types.ts";

const TABLE = matching(/^[a-zA-Z0-9._-]{3,255}$/, 'letters, digits, ".", "_" and "-" only, at least 3 of them');

/** Settings of intents in DynamoDB. The SDK finds keys, profile and role in its own variables and files. */
export const dynamodbSettings = {
  AWS_REGION: setting(
    "dynamodb.region",
    text(100).optional(),
    "Region of the tables, such as eu-central-1; default: from the SDK's configuration",
  ),
  DYNAMODB_ENDPOINT: setting(
    "dynamodb.endpoint",
    text().optional(),
    "Endpoint to use instead of Amazon's, such as http://localhost:8000",
    { aliases: ["AWS_ENDPOINT_URL_DYNAMODB"] },
  ),
  OUTBOX_DYNAMODB_TABLE: setting("dynamodb.table", TABLE.default("outbox"), "Table of the intents", {
    aliases: ["DYNAMODB_OUTBOX"],
  }),
  OUTBOX_DYNAMODB_DEAD_LETTERS: setting(
    "dynamodb.deadLetters",
    TABLE.optional(),
    "Table of the dead letters; default: the table of the intents with the suffix -dead-letters",
    { aliases: ["DYNAMODB_DEAD_LETTERS"] },
  ),
  OUTBOX_DYNAMODB_CHECKPOINTS: setting(
    "dynamodb.checkpoints",
    TABLE.default("outbox-relay-checkpoints"),
    "Table in which `dynamodb run` stores how far each relay has read the stream",
  ),
  OUTBOX_DYNAMODB_TIMEOUT: setting(
    "dynamodb.timeout",
    duration({ minMs: 1_000, maxMs: 900_000 }).default(30_000),
    "Timeout of one invocation of a relay in `dynamodb run`, like a function's timeout in AWS",
  ),
  OUTBOX_DYNAMODB_SWEEP_INTERVAL: setting(
    "dynamodb.sweepInterval",
    duration({ minMs: 100, maxMs: 3_600_000 }).default(5_000),
    "Interval at which `dynamodb run` looks for retries that are due",
  ),
};
