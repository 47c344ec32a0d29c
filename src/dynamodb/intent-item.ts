import type { AttributeValue } from "@aws-sdk/client-dynamodb";
import type { EventHeaders } from "../core/event.ts";
import type { FailedAttempt } from "../ports/technical-events.ts";
import type { DeadLetter, DynamoDbItem, IntentRecord } from "./intent-record.ts";

/**
 * Reads an item of any writer. Attributes that are missing or of the wrong type are listed in `fault`; the others are
 * still read.
 */
export function recordOf(item: Readonly<DynamoDbItem>): IntentRecord {
  const faults: string[] = [];
  const type = typeIn(item);
  if (type === "") faults.push("`intent` is not a map with a string `type`");
  return {
    id: item.id?.S ?? "",
    type,
    key: optionalText(item, "key", faults),
    payload: payloadIn(item, faults),
    headers: headersIn(item, faults),
    correlationId: optionalText(item, "correlation_id", faults),
    createdAt: item.created_at?.S ?? null,
    deliveredAt: deliveredAtIn(item),
    attemptCount: countIn(item.attempt_count),
    lastError: item.last_error?.S ?? null,
    errors: (item.errors?.L ?? []).map(attemptOf),
    retryAt: item.retry_at?.S ?? null,
    claimedUntil: item.claimed_until?.S ?? null,
    claims: countIn(item.claims),
    fault: faults.length === 0 ? null : `The item cannot be read as an intent: ${faults.join("; ")}`,
    item,
  };
}

/** Reads the item of a dead letter. */
export function deadLetterOf(item: Readonly<DynamoDbItem>): DeadLetter {
  return { ...recordOf(item), deadAt: item.dead_at?.S ?? "" };
}

/** The attribute that stores the failures. */
export function errorsAttribute(errors: readonly FailedAttempt[]): AttributeValue {
  return {
    L: errors.map(({ at, attempt, reason }) => ({
      M: { at: { S: at }, attempt: { N: String(attempt) }, reason: { S: reason } },
    })),
  };
}

function typeIn(item: Readonly<DynamoDbItem>): string {
  return item.intent?.M?.type?.S ?? "";
}

function payloadIn(item: Readonly<DynamoDbItem>, faults: string[]): Buffer {
  const payload = item.intent?.M?.payload;
  if (payload?.S !== undefined) return Buffer.from(payload.S);
  if (payload?.B !== undefined) return Buffer.from(payload.B);
  faults.push("`intent.payload` is neither a string nor bytes");
  return Buffer.alloc(0);
}

function headersIn(item: Readonly<DynamoDbItem>, faults: string[]): EventHeaders {
  const { headers } = item;
  if (headers === undefined || headers.NULL === true) return {};
  const entries = Object.entries(headers.M ?? {});
  const isRight = headers.M !== undefined && entries.every(([, value]) => value.S !== undefined);
  if (!isRight) faults.push("`headers` is not a map of strings");
  return Object.fromEntries(entries.flatMap(([name, { S }]) => (S === undefined ? [] : [[name, S]])));
}

function optionalText(item: Readonly<DynamoDbItem>, name: string, faults: string[]): string | null {
  const value = item[name];
  if (value === undefined || value.NULL === true) return null;
  if (value.S === undefined) faults.push(`\`${name}\` is not a string`);
  return value.S ?? null;
}

/** Any value means delivered; only an explicit null does not. */
function deliveredAtIn({ delivered_at: at }: Readonly<DynamoDbItem>): string | null {
  if (at === undefined || at.NULL === true) return null;
  return at.S ?? at.N ?? "?";
}

function countIn(value: AttributeValue | undefined): number {
  const count = Number(value?.N ?? 0);
  return Number.isSafeInteger(count) && count > 0 ? count : 0;
}

function attemptOf({ M = {} }: AttributeValue): FailedAttempt {
  return { at: M.at?.S ?? "", attempt: countIn(M.attempt), reason: M.reason?.S ?? "" };
}
