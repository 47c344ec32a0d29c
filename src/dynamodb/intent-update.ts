import { isConditionFailure } from "./dynamodb-errors.ts";
import type { DynamoDbLink } from "./dynamodb-link.ts";
import type { DynamoDbItem } from "./intent-record.ts";

/** The condition of an undelivered intent. Some writers store an explicit null instead of no attribute. */
export const UNDELIVERED =
  "attribute_exists(id) AND (attribute_not_exists(delivered_at) OR attribute_type(delivered_at, :null))";
/** The values that the condition refers to. */
export const NULL_TYPE: DynamoDbItem = { ":null": { S: "NULL" } };

interface Change {
  readonly doing: string;
  readonly expression: string;
  /** An additional condition. The intent must always exist and be undelivered. */
  readonly condition?: string;
  readonly values: DynamoDbItem;
  readonly returns?: boolean;
}

/** Updates an undelivered intent. Null: it is delivered or gone, or the condition does not hold. */
export async function updateIntent(
  link: DynamoDbLink,
  table: string,
  id: string,
  change: Change,
): Promise<DynamoDbItem | null> {
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
