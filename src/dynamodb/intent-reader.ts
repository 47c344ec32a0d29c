import type { KeysAndAttributes } from "@aws-sdk/client-dynamodb";
import { backoffMs } from "../core/backoff.ts";
import { systemClock } from "../core/clock.ts";
import { RelayError } from "../core/errors.ts";
import type { DynamoDbLink } from "./dynamodb-link.ts";
import { recordOf } from "./intent-item.ts";
import type { IntentRecord } from "./intent-record.ts";
import { RETRIES_INDEX } from "./tables.ts";

/** DynamoDB's limit for one BatchGetItem. */
const READ_MAX = 100;
const READ_TRIES_MAX = 8;
/** The pause before keys that DynamoDB did not process are requested again; it doubles each time. */
const READ_PAUSE_MS = { firstMs: 20, lastMs: 2_560 };

/** Reads intents by id; missing ones are left out. */
export async function readIntents(
  link: DynamoDbLink,
  table: string,
  ids: readonly string[],
): Promise<ReadonlyMap<string, IntentRecord>> {
  const found = new Map<string, IntentRecord>();
  const wanted = [...new Set(ids)];
  for (let at = 0; at < wanted.length; at += READ_MAX) {
    for (const record of await readSome(link, table, wanted.slice(at, at + READ_MAX))) found.set(record.id, record);
  }
  return found;
}

async function readSome(link: DynamoDbLink, table: string, ids: readonly string[]): Promise<readonly IntentRecord[]> {
  const found: IntentRecord[] = [];
  let asked: Record<string, KeysAndAttributes> = {
    [table]: { Keys: ids.map((id) => ({ id: { S: id } })), ConsistentRead: true },
  };
  for (let tries = 0; tries < READ_TRIES_MAX; tries += 1) {
    if (tries > 0) await systemClock.sleep(backoffMs(READ_PAUSE_MS, tries));
    const { Responses = {}, UnprocessedKeys = {} } = await link.send(`reading intents of ${table}`, (client, sdk) =>
      client.send(new sdk.BatchGetItemCommand({ RequestItems: asked })),
    );
    found.push(...Object.values(Responses).flat().map(recordOf));
    // A response holds at most 16 MB, so large intents need several.
    if (Object.keys(UnprocessedKeys).length === 0) return found;
    asked = UnprocessedKeys;
  }
  throw new RelayError(
    "DATABASE_BUSY",
    `DynamoDB did not return all intents of ${table} after ${READ_TRIES_MAX} attempts: raise the table's read capacity.`,
  );
}

/** The ids of due intents, the longest overdue first. */
export async function dueIntents(
  link: DynamoDbLink,
  table: string,
  type: string,
  nowIso: string,
  limit: number,
): Promise<readonly string[]> {
  const { name, partitionKey, sortKey } = RETRIES_INDEX;
  const { Items = [] } = await link.send(`looking for due intents in ${table}`, (client, sdk) =>
    client.send(
      new sdk.QueryCommand({
        TableName: table,
        IndexName: name,
        KeyConditionExpression: `${partitionKey} = :type AND ${sortKey} <= :now`,
        ExpressionAttributeValues: { ":type": { S: type }, ":now": { S: nowIso } },
        Limit: limit,
      }),
    ),
  );
  return Items.flatMap(({ id }) => id?.S ?? []);
}
