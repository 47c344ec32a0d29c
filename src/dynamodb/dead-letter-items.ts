import type { DynamoDbLink } from "./dynamodb-link.ts";
import type { History } from "./failure-history.ts";
import { errorsAttribute, recordOf } from "./intent-item.ts";
import type { IntentRecord, Item } from "./intent-record.ts";
import { dueAt } from "./new-intent.ts";
import { DEAD_LETTERS_INDEX } from "./tables.ts";

/** The index needs a string, and an unreadable item has no type. */
const NO_TYPE = "unknown";

/** The item of a dead letter: the intent with its failures, without the attributes that would have it retried. */
export function deadLetterItem({ item, type }: IntentRecord, history: History, at: number): Item {
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
export function replayedItem(letter: Readonly<Item>, now: number, sweepAfterMs: number): Item {
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
export async function letterItem(link: DynamoDbLink, table: string, id: string): Promise<Item | null> {
  const { Item } = await link.send(`reading a dead letter of ${table}`, (client, sdk) =>
    client.send(new sdk.GetItemCommand({ TableName: table, Key: { id: { S: id } }, ConsistentRead: true })),
  );
  return Item ?? null;
}

/** Reads pages until the limit is reached. Without a limit it only counts and reads no items. */
export async function itemsOf(
  link: DynamoDbLink,
  table: string,
  type: string | undefined,
  limit: number | null,
): Promise<{ readonly items: readonly Item[]; readonly count: number }> {
  const items: Item[] = [];
  let count = 0;
  let from: Item | undefined;
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
  paging: { Limit?: number; Select?: "COUNT"; ExclusiveStartKey: Item | undefined },
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
