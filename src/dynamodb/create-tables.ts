import type { CreateTableCommandInput, DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { dynamoDbLink } from "./dynamodb-link.ts";
import {
  DEAD_LETTERS_INDEX,
  PARTITION_KEY,
  RETRIES_INDEX,
  STREAM_VIEW,
  TABLES,
  type TableIndex,
  type TableNames,
} from "./tables.ts";

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
