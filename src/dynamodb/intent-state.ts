import type { DynamoDbLink } from "./dynamodb-link.ts";
import { type IntentFailure, withFailure } from "./failure-history.ts";
import { errorsAttribute, recordOf } from "./intent-item.ts";
import { dueIntents, readIntents } from "./intent-reader.ts";
import type { DynamoDbItem, IntentRecord } from "./intent-record.ts";
import { updateIntent } from "./intent-update.ts";
import { TTL_ATTRIBUTE } from "./tables.ts";

const CLAIMS_AT_ONCE = 16;

/** The result of a write: `gone` when the intent was deleted or marked as delivered in the meantime. */
export type IntentWrite = "written" | "gone";

/** The relay's side of the outbox: reads intents and records their delivery. */
export interface IntentState {
  /** The current state; deleted intents are left out. */
  read(ids: readonly string[]): Promise<ReadonlyMap<string, IntentRecord>>;
  /** Call it only after the external system acknowledged the intent. */
  markDelivered(id: string, at: number): Promise<IntentWrite>;
  /** Counts the failed attempt and sets the time of the next one. */
  recordFailure(record: IntentRecord, failure: IntentFailure, retryAt: number): Promise<IntentWrite>;
  /** The ids of intents due at this time (ISO 8601), the longest overdue first. The index may lag a little. */
  due(type: string, nowIso: string, limit: number): Promise<readonly string[]>;
  /**
   * Claims those of the intents that are due before `dueBeforeIso` and not claimed, so that no sweep relays them before
   * `untilIso`. The others are left out.
   */
  claim(ids: readonly string[], claim: IntentClaim): Promise<readonly IntentRecord[]>;
  /** Releases claimed intents that were not attempted: they are due now. */
  release(ids: readonly string[]): Promise<void>;
}

export interface IntentClaim {
  readonly nowIso: string;
  readonly dueBeforeIso: string;
  readonly untilIso: string;
}

/** The relay's side of an outbox. */
export function intentState(link: DynamoDbLink, table: string, keepDeliveredMs: number): IntentState {
  return {
    read: (ids) => readIntents(link, table, ids),
    due: (type, nowIso, limit) => dueIntents(link, table, type, nowIso, limit),
    async markDelivered(id, at) {
      const expires = Math.ceil((at + keepDeliveredMs) / 1_000);
      const item = await updateIntent(link, table, id, {
        doing: "marking an intent delivered",
        expression: `SET delivered_at = :at, ${TTL_ATTRIBUTE} = :expires REMOVE retry_type, retry_at, claimed_until, claims`,
        values: { ":at": { S: new Date(at).toISOString() }, ":expires": { N: String(expires) } },
      });
      return settledOf(item);
    },
    recordFailure: (record, failure, retryAt) =>
      withFailure(record, failure, async ({ attemptCount, errors, lastError }) => {
        const item = await updateIntent(link, table, record.id, {
          doing: "recording a failure",
          expression:
            "SET attempt_count = :count, last_error = :error, errors = :errors, retry_type = :type, retry_at = :retry REMOVE claimed_until, claims",
          values: {
            ":count": { N: String(attemptCount) },
            ":error": { S: lastError },
            ":errors": errorsAttribute(errors),
            ":type": { S: record.type },
            ":retry": { S: new Date(retryAt).toISOString() },
          },
        });
        return settledOf(item);
      }),
    async claim(ids, claim) {
      const claimed: IntentRecord[] = [];
      for (let at = 0; at < ids.length; at += CLAIMS_AT_ONCE) {
        const some = ids.slice(at, at + CLAIMS_AT_ONCE).map((id) => claimOne(link, table, id, claim));
        claimed.push(...(await Promise.all(some)).filter((record) => record !== null));
      }
      return claimed;
    },
    async release(ids) {
      const change = {
        doing: "releasing an intent",
        expression: "SET retry_at = :now REMOVE claimed_until, claims",
        condition: "attribute_exists(claimed_until)",
        values: { ":now": { S: new Date().toISOString() } },
      };
      await Promise.all(ids.map((id) => updateIntent(link, table, id, change)));
    },
  };
}

async function claimOne(
  link: DynamoDbLink,
  table: string,
  id: string,
  claim: IntentClaim,
): Promise<IntentRecord | null> {
  const { dueBeforeIso, nowIso, untilIso } = claim;
  const item = await updateIntent(link, table, id, {
    doing: "claiming an intent",
    expression: "SET retry_at = :until, claimed_until = :until ADD claims :one",
    condition: "retry_at <= :due AND (attribute_not_exists(claimed_until) OR claimed_until <= :now)",
    values: { ":until": { S: untilIso }, ":due": { S: dueBeforeIso }, ":now": { S: nowIso }, ":one": { N: "1" } },
    returns: true,
  });
  return item === null ? null : recordOf(item);
}

function settledOf(item: DynamoDbItem | null): IntentWrite {
  return item === null ? "gone" : "written";
}
