import { isConditionFailure } from "./dynamodb-errors.ts";
import type { DynamoDbLink } from "./dynamodb-link.ts";
import type { Item } from "./intent-record.ts";

/** Not everybody leaves an empty attribute out. */
export const UNDELIVERED =
  "attribute_exists(id) AND (attribute_not_exists(delivered_at) OR attribute_type(delivered_at, :null))";
/** What the condition names. */
export const NULL_TYPE: Item = { ":null": { S: "NULL" } };

interface Change {
  readonly doing: string;
  readonly expression: string;
  /** What must hold besides: the intent is there and not delivered in any case. */
  readonly condition?: string;
  readonly values: Item;
  readonly returns?: boolean;
}

/** Changes an intent that is not delivered yet. Null: it is, or it is gone, or the condition does not hold. */
export async function updateIntent(
  link: DynamoDbLink,
  table: string,
  id: string,
  change: Change,
): Promise<Item | null> {
  const { condition, doing, expression, returns = false, values } = change;
  try {
    const { Attributes = {} } = await link.send(`${doing} in ${table}`, (client, sdk) =>
      client.send(
        new sdk.UpdateItemCommand({
          TableName: table,
          Key: { id: { S: id } },
          UpdateExpression: expression,
          ConditionExpression: condition === undefined ? UNDELIVERED : `${UNDELIVERED} AND ${condition}`,
          ExpressionAttributeValues: { ...NULL_TYPE, ...values },
          ...(returns ? { ReturnValues: "ALL_NEW" as const } : {}),
        }),
      ),
    );
    return Attributes;
  } catch (error) {
    if (isConditionFailure(error)) return null;
    throw error;
  }
}
