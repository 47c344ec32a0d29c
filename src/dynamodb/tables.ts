import type { CreateTableCommandInput, DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { dynamoDbLink } from "./dynamodb-link.ts";

/** The default names. A stack with several outboxes needs a name for each. */
export const TABLES = { outbox: "outbox", deadLetters: "outbox-dead-letters" } as const;

/** The environment variables that name a function's tables. */
export const TABLE_VARIABLES = { outbox: "DYNAMODB_OUTBOX", deadLetters: "DYNAMODB_DEAD_LETTERS" } as const;

/** The partition key of both tables, a string: the intent's id, which is the idempotency key. */
export const PARTITION_KEY = "id";

/** The stream of both tables: new intents wake their relay, new dead letters can trigger alerts. */
export const STREAM_VIEW = "NEW_AND_OLD_IMAGES";

/**
 * Seconds since 1970 after which DynamoDB may delete a delivered intent, if time to live is enabled for this attribute.
 */
export const TTL_ATTRIBUTE = "expires_at";

/** A global secondary index. */
export interface TableIndex {
  readonly name: string;
  /** Both keys are strings. */
  readonly partitionKey: string;
  readonly sortKey: string;
  readonly projection: "KEYS_ONLY";
}

/** The outbox's index: undelivered intents by type, the longest overdue first. Delivered intents are not in it. */
export const RETRIES_INDEX: TableIndex = {
  name: "retries",
  partitionKey: "retry_type",
  sortKey: "retry_at",
  projection: "KEYS_ONLY",
};

/** The dead-letter table's index: by type, oldest first. */
export const DEAD_LETTERS_INDEX: TableIndex = {
  name: "by-type",
  partitionKey: "intent_type",
  sortKey: "dead_at",
  projection: "KEYS_ONLY",
};

/** The names of an outbox's two tables. */
export interface TableNames {
  readonly table: string;
  readonly deadLetterTable: string;
}

const WAIT_SECONDS_MAX = 60;

/** Creates both tables if they are missing and waits until they can be used. For development and tests. */
export async function createTables(
  client: DynamoDBClient,
  names: TableNames = { table: TABLES.outbox, deadLetterTable: TABLES.deadLetters },
): Promise<void> {
  const link = dynamoDbLink({ client });
  const wanted = [tableOf(names.table, RETRIES_INDEX), tableOf(names.deadLetterTable, DEAD_LETTERS_INDEX)];
  for (const input of wanted) {
    const TableName = input.TableName!;
    await link.send(`creating the table ${TableName}`, async (_, sdk) => {
      await client.send(new sdk.CreateTableCommand(input)).catch((error: Error) => {
        if (error.name !== "ResourceInUseException") throw error;
      });
      await sdk.waitUntilTableExists(
        { client, maxWaitTime: WAIT_SECONDS_MAX, minDelay: 1, maxDelay: 2 },
        { TableName },
      );
    });
  }
}

function tableOf(name: string, index: TableIndex): CreateTableCommandInput {
  const { partitionKey, projection, sortKey } = index;
  return {
    TableName: name,
    BillingMode: "PAY_PER_REQUEST",
    AttributeDefinitions: [PARTITION_KEY, partitionKey, sortKey].map((AttributeName) => ({
      AttributeName,
      AttributeType: "S",
    })),
    KeySchema: [{ AttributeName: PARTITION_KEY, KeyType: "HASH" }],
    GlobalSecondaryIndexes: [
      {
        IndexName: index.name,
        KeySchema: [
          { AttributeName: partitionKey, KeyType: "HASH" },
          { AttributeName: sortKey, KeyType: "RANGE" },
        ],
        Projection: { ProjectionType: projection },
      },
    ],
    StreamSpecification: { StreamEnabled: true, StreamViewType: STREAM_VIEW },
  };
}
