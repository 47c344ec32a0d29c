/** All that the stack has to know of the relay. In your project: "outbox-relay", "outbox-relay/dynamodb" and "outbox-relay/lambda". */
export {
  DEAD_LETTERS_INDEX,
  PARTITION_KEY,
  RETRIES_INDEX,
  TABLE_VARIABLES,
  TTL_ATTRIBUTE,
} from "../../src/dynamodb-outbox.ts";
export type { IntentRelay } from "../../src/index.ts";
export { type FilterPattern, type IntentEvent, streamFilter } from "../../src/lambda.ts";

/** What Lambda and pipes need to read a stream. */
export const STREAM_RIGHTS = [
  "dynamodb:DescribeStream",
  "dynamodb:GetRecords",
  "dynamodb:GetShardIterator",
  "dynamodb:ListStreams",
];
