import type { TransactWriteItem } from "@aws-sdk/client-dynamodb";
import { RelayError } from "../core/errors.ts";
import { failedConditions, isConditionFailure } from "./dynamodb-errors.ts";
import type { DynamoDbLink } from "./dynamodb-link.ts";
import type { NewIntent } from "./intent-record.ts";
import { newIntentItem } from "./new-intent.ts";

/** DynamoDB's limit for one transaction. */
const TRANSACTION_MAX = 100;

/** The application's side of the outbox. */
export interface IntentWriter {
  /**
   * Entries for your own TransactWriteItems: your writes and the intents are committed together or not at all. An id
   * that is already in the outbox cancels the transaction (ConditionalCheckFailed).
   */
  intend(intents: NewIntent | readonly NewIntent[]): TransactWriteItem[];
  /** Writes only intents, all of them or none, and returns their ids. An intent whose id exists stays unchanged. */
  write(intents: NewIntent | readonly NewIntent[]): Promise<readonly string[]>;
}

/** The application's side of an outbox. */
export function intentWriter(link: DynamoDbLink, table: string, sweepAfterMs: number): IntentWriter {
  const entriesOf = (intents: NewIntent | readonly NewIntent[]) => {
    const list = Array.isArray(intents) ? (intents as readonly NewIntent[]) : [intents as NewIntent];
    if (list.length > TRANSACTION_MAX) {
      const what = `${list.length} intents do not fit into one transaction, which holds at most ${TRANSACTION_MAX}`;
      throw new RelayError("EVENT_INVALID", `${what}: write them in several transactions.`);
    }
    const now = Date.now();
    return list.map((intent) => ({
      Put: {
        TableName: table,
        Item: newIntentItem(intent, now, sweepAfterMs),
        ConditionExpression: "attribute_not_exists(id)",
      },
    }));
  };

  async function writeAll(entries: ReturnType<typeof entriesOf>): Promise<void> {
    const doing = `writing ${entries.length} intents to ${table}`;
    let rest = entries;
    while (rest.length > 0) {
      try {
        await link.send(doing, async (client, sdk) => {
          // A single put costs half as much as a transaction.
          if (rest.length === 1) await client.send(new sdk.PutItemCommand(rest[0]!.Put));
          else await client.send(new sdk.TransactWriteItemsCommand({ TransactItems: rest }));
        });
        return;
      } catch (error) {
        if (!isConditionFailure(error)) throw error;
        const there = new Set(rest.length === 1 ? [0] : failedConditions(error));
        rest = rest.filter((_, index) => !there.has(index));
      }
    }
  }

  return {
    intend: entriesOf,
    async write(intents) {
      const entries = entriesOf(intents);
      await writeAll(entries);
      return entries.map(({ Put }) => Put.Item.id.S);
    },
  };
}
