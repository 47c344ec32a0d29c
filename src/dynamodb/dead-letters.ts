import type { TransactWriteItem } from "@aws-sdk/client-dynamodb";
import { failedConditions, isConditionFailure } from "./dynamodb-errors.ts";
import type { DynamoDbLink } from "./dynamodb-link.ts";
import { type History, type IntentFailure, withFailure } from "./failure-history.ts";
import { deadLetterOf, errorsAttribute, recordOf } from "./intent-item.ts";
import type { DeadLetter, DynamoDbItem, IntentRecord } from "./intent-record.ts";
import type { IntentWrite } from "./intent-state.ts";
import { NULL_TYPE, UNDELIVERED } from "./intent-update.ts";
import { dueAt } from "./new-intent.ts";
import { DEAD_LETTERS_INDEX, type TableNames } from "./tables.ts";

const LIST_MAX = 100;

/** Intents that are not retried automatically. */
export interface DeadLetters {
  /** Moves an intent into the dead-letter table with its history, in one transaction. */
  deadLetter(record: IntentRecord, failure: IntentFailure): Promise<IntentWrite>;
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

/** The index needs a string, and an unreadable item has no type. */
const NO_TYPE = "unknown";

/** The item of a dead letter: the intent with its failures, without the attributes that would have it retried. */
function deadLetterItem({ item, type }: IntentRecord, history: History, at: number): DynamoDbItem {
  const { claimed_until, claims, expires_at, retry_at, retry_type, ...kept } = item;
  return {
    ...kept,
    attempt_count: { N: String(history.attemptCount) },
    last_error: { S: history.lastError },
    errors: errorsAttribute(history.errors),
    intent_type: { S: type || NO_TYPE },
    dead_at: { S: new Date(at).toISOString() },
  };
}

/** The item of a replayed intent: as new, but with its history. */
function replayedItem(letter: Readonly<DynamoDbItem>, now: number, sweepAfterMs: number): DynamoDbItem {
  const { dead_at, intent_type, ...kept } = letter;
  const { type } = recordOf(letter);
  return {
    ...kept,
    attempt_count: { N: "0" },
    replayed_at: { S: new Date(now).toISOString() },
    ...(type === "" ? {} : dueAt(type, now + sweepAfterMs)),
  };
}

/** The item of one dead letter, or null. */
async function letterItem(link: DynamoDbLink, table: string, id: string): Promise<DynamoDbItem | null> {
  const { Item } = await link.send(`reading a dead letter of ${table}`, (client, sdk) =>
    client.send(new sdk.GetItemCommand({ TableName: table, Key: { id: { S: id } }, ConsistentRead: true })),
  );
  return Item ?? null;
}

/** Reads pages until the limit is reached. Without a limit it only counts and reads no items. */
async function itemsOf(
  link: DynamoDbLink,
  table: string,
  type: string | undefined,
  limit: number | null,
): Promise<{ readonly items: readonly DynamoDbItem[]; readonly count: number }> {
  const items: DynamoDbItem[] = [];
  let count = 0;
  let from: DynamoDbItem | undefined;
  do {
    const size = limit === null ? { Select: "COUNT" as const } : { Limit: Math.max(1, limit - count) };
    const page = await pageOf(link, table, type, { ...size, ExclusiveStartKey: from });
    items.push(...(page.Items ?? []));
    count += page.Count ?? 0;
    from = page.LastEvaluatedKey;
  } while (from !== undefined && (limit === null || count < limit));
  return { items, count };
}

async function pageOf(
  link: DynamoDbLink,
  table: string,
  type: string | undefined,
  paging: { Limit?: number; Select?: "COUNT"; ExclusiveStartKey: DynamoDbItem | undefined },
) {
  const { name, partitionKey } = DEAD_LETTERS_INDEX;
  const ofType = {
    IndexName: name,
    KeyConditionExpression: `${partitionKey} = :type`,
    ExpressionAttributeValues: { ":type": { S: type ?? "" } },
  };
  return await link.send(`listing the dead letters of ${table}`, (client, sdk) =>
    type === undefined
      ? client.send(new sdk.ScanCommand({ TableName: table, ...paging }))
      : client.send(new sdk.QueryCommand({ TableName: table, ...ofType, ...paging })),
  );
}
