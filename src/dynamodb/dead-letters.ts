import type { TransactWriteItem } from "@aws-sdk/client-dynamodb";
import { deadLetterItem, itemsOf, letterItem, replayedItem } from "./dead-letter-items.ts";
import { failedConditions, isConditionFailure } from "./dynamodb-errors.ts";
import type { DynamoDbLink } from "./dynamodb-link.ts";
import { type IntentFailure, withFailure } from "./failure-history.ts";
import { deadLetterOf } from "./intent-item.ts";
import type { DeadLetter, IntentRecord } from "./intent-record.ts";
import type { Settled } from "./intent-state.ts";
import { NULL_TYPE, UNDELIVERED } from "./intent-update.ts";
import type { TableNames } from "./tables.ts";

const LIST_MAX = 100;

/** Intents that are not retried automatically. */
export interface DeadLetters {
  /** Moves an intent into the dead-letter table with its history, in one transaction. */
  deadLetter(record: IntentRecord, failure: IntentFailure): Promise<Settled>;
  /** The dead letters of a type, oldest first; without a type all of them, in no order. */
  deadLetters(options?: { readonly type?: string; readonly limit?: number }): Promise<readonly DeadLetter[]>;
  deadLetterOf(id: string): Promise<DeadLetter | null>;
  /** The number of dead letters. */
  deadLetterDepth(type?: string): Promise<number>;
  /**
   * Moves one back into the outbox in one transaction, with its attempts reset; the stream delivers it like a new
   * intent. `missing`: there is no such dead letter. `present`: an intent with this id is already in the outbox.
   */
  replay(id: string): Promise<"replayed" | "missing" | "present">;
}

/** The dead letters of an outbox. */
export function deadLetters(link: DynamoDbLink, names: TableNames, sweepAfterMs: number): DeadLetters {
  const { deadLetterTable, table } = names;
  return {
    deadLetter: (record, failure) =>
      withFailure(record, failure, async (history) => {
        const Key = { id: { S: record.id } };
        const condition = { ConditionExpression: UNDELIVERED, ExpressionAttributeValues: NULL_TYPE };
        const refused = await move(link, `moving an intent to ${deadLetterTable}`, [
          { Put: { TableName: deadLetterTable, Item: deadLetterItem(record, history, failure.at) } },
          { Delete: { TableName: table, Key, ...condition } },
        ]);
        return refused === null ? "written" : "gone";
      }),
    async deadLetters({ limit = LIST_MAX, type } = {}) {
      const found = (await itemsOf(link, deadLetterTable, type, limit)).items;
      if (type === undefined) return found.map(deadLetterOf);
      // The index holds only the keys.
      const whole = await Promise.all(found.map(({ id }) => letterItem(link, deadLetterTable, id?.S ?? "")));
      return whole.filter((item) => item !== null).map(deadLetterOf);
    },
    async deadLetterOf(id) {
      const item = await letterItem(link, deadLetterTable, id);
      return item === null ? null : deadLetterOf(item);
    },
    deadLetterDepth: async (type) => (await itemsOf(link, deadLetterTable, type, null)).count,
    async replay(id) {
      const dead = await letterItem(link, deadLetterTable, id);
      if (dead === null) return "missing";
      const Key = { id: { S: id } };
      const Item = replayedItem(dead, Date.now(), sweepAfterMs);
      const refused = await move(link, `replaying a dead letter of ${deadLetterTable}`, [
        { Put: { TableName: table, Item, ConditionExpression: "attribute_not_exists(id)" } },
        { Delete: { TableName: deadLetterTable, Key, ConditionExpression: "attribute_exists(id)" } },
      ]);
      if (refused === null) return "replayed";
      return refused.includes(0) ? "present" : "missing";
    },
  };
}

/** Null, or the indexes of the items whose condition did not hold: then nothing was written. */
async function move(link: DynamoDbLink, doing: string, items: TransactWriteItem[]): Promise<readonly number[] | null> {
  try {
    await link.send(doing, (client, sdk) => client.send(new sdk.TransactWriteItemsCommand({ TransactItems: items })));
    return null;
  } catch (error) {
    if (isConditionFailure(error)) return failedConditions(error);
    throw error;
  }
}
