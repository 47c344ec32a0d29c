import { RelayError } from "../core/errors.ts";
import { type DeadLetters, deadLetters } from "./dead-letters.ts";
import { type DynamoDbConnection, dynamoDbLink } from "./dynamodb-link.ts";
import { type IntentState, intentState } from "./intent-state.ts";
import { type IntentWriter, intentWriter } from "./intent-writer.ts";
import { TABLES, type TableNames } from "./tables.ts";

/** Options of `dynamodbOutbox`. */
export interface DynamoDbOutboxOptions extends DynamoDbConnection {
  /** Default: `outbox`. */
  readonly table?: string;
  /** Default: the outbox's name followed by `-dead-letters`. */
  readonly deadLetterTable?: string;
  /** The age at which the sweep relays an intent that the stream's function has not relayed. Default: 15 minutes. */
  readonly sweepAfterMs?: number;
  /** How long delivered intents are kept if time to live is enabled for `expires_at`. Default: 30 days. */
  readonly keepDeliveredMs?: number;
}

/** An outbox of intents in DynamoDB, for the application that writes them, their relays and operators. */
export interface DynamoDbOutbox extends TableNames, IntentWriter, IntentState, DeadLetters {
  /** Closes the client if it was opened here. */
  close(): Promise<void>;
}

const SWEEP_AFTER_MS = 15 * 60_000;
const KEEP_DELIVERED_MS = 30 * 24 * 60 * 60_000;

/** Creates an outbox in DynamoDB. Opens no connection before the first request. Throws CONFIG_INVALID. */
export function dynamodbOutbox(options: DynamoDbOutboxOptions = {}): DynamoDbOutbox {
  const { keepDeliveredMs = KEEP_DELIVERED_MS, sweepAfterMs = SWEEP_AFTER_MS, table = TABLES.outbox } = options;
  const { deadLetterTable = `${table}-dead-letters` } = options;
  checkName("table", table);
  checkName("deadLetterTable", deadLetterTable);
  checkMs("sweepAfterMs", sweepAfterMs);
  checkMs("keepDeliveredMs", keepDeliveredMs);
  if (table === deadLetterTable) throw invalid(`table and deadLetterTable are both ${JSON.stringify(table)}`);
  const link = dynamoDbLink(options);
  const names = { table, deadLetterTable };
  return {
    ...names,
    ...intentWriter(link, table, sweepAfterMs),
    ...intentState(link, table, keepDeliveredMs),
    ...deadLetters(link, names, sweepAfterMs),
    close: () => link.close(),
  };
}

/** A table's name, or its ARN if another account owns it. */
function checkName(setting: string, name: unknown): void {
  const isRight = typeof name === "string" && (/^[\w.-]{3,255}$/.test(name) || name.startsWith("arn:"));
  if (!isRight)
    throw invalid(`${setting} is ${JSON.stringify(name)}; a table name has 3 to 255 characters of a-z A-Z 0-9 _ . -`);
}

function checkMs(setting: string, ms: number): void {
  if (!Number.isFinite(ms) || ms < 0) throw invalid(`${setting} is ${ms}, a number of milliseconds is expected`);
}

function invalid(what: string): RelayError {
  return new RelayError("CONFIG_INVALID", `The outbox in DynamoDB: ${what}.`);
}
