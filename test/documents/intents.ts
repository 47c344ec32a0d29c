import { CreateTableCommand, DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { type DynamoDbOutbox, dynamodbOutbox } from "../../src/dynamodb-outbox.ts";
import { DYNAMODB_ENVIRONMENT, type DynamoDb } from "../servers/dynamodb.ts";
import { until } from "../servers/until.ts";

const place = ({ endpoint }: DynamoDb) => ({
  endpoint,
  region: DYNAMODB_ENVIRONMENT.AWS_REGION,
  credentials: { accessKeyId: "local", secretAccessKey: "local" },
});

/** The application's own data. */
export async function createTimeEntries(server: DynamoDb): Promise<void> {
  const client = new DynamoDBClient(place(server));
  try {
    await client.send(
      new CreateTableCommand({
        TableName: "time-entries",
        BillingMode: "PAY_PER_REQUEST",
        AttributeDefinitions: [{ AttributeName: "id", AttributeType: "S" }],
        KeySchema: [{ AttributeName: "id", KeyType: "HASH" }],
      }),
    );
  } finally {
    client.destroy();
  }
}

/** Writes an intent that cannot be translated, and waits until the relay has made a dead letter of it. */
export async function withPoisonIntent(server: DynamoDb): Promise<void> {
  const outbox: DynamoDbOutbox = dynamodbOutbox({ table: "outbox", ...place(server) });
  try {
    const [id = ""] = await outbox.write({ type: "SyncToPayroll", payload: "this is no JSON" });
    await until("the intent is a dead letter", async () => (await outbox.deadLetterOf(id)) !== null);
  } finally {
    await outbox.close();
  }
}
