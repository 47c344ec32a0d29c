import type { DynamoDbLink } from "../dynamodb/dynamodb-link.ts";
import type { DynamoDbOutbox } from "../dynamodb/dynamodb-outbox.ts";
import { RETRIES_INDEX } from "../dynamodb/tables.ts";
import type { Backlog } from "../ports/queue-store.ts";

/**
 * The backlog of one intent type, as far as one request shows. Items of other writers may be missing from the index.
 */
export async function intentBacklog(link: DynamoDbLink, outbox: DynamoDbOutbox, type: string): Promise<Backlog> {
  const { name, partitionKey } = RETRIES_INDEX;
  const { Items = [], LastEvaluatedKey } = await link.send(`counting intents in ${outbox.table}`, (client, sdk) =>
    client.send(
      new sdk.QueryCommand({
        TableName: outbox.table,
        IndexName: name,
        KeyConditionExpression: `${partitionKey} = :type`,
        ExpressionAttributeValues: { ":type": { S: type } },
      }),
    ),
  );
  const first = Items[0]?.id?.S;
  const oldest = first === undefined ? undefined : (await outbox.read([first])).get(first);
  const createdMs = Date.parse(oldest?.createdAt ?? "");
  return {
    pending: Items.length,
    isEstimate: LastEvaluatedKey !== undefined,
    oldestAgeMs: Number.isNaN(createdMs) ? null : Math.max(0, Date.now() - createdMs),
    // Intents are unordered: none waits behind another.
    behindDead: 0,
    dead: await outbox.deadLetterDepth(type),
  };
}
