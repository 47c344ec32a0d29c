import { CreateTableCommand, DynamoDBClient, waitUntilTableExists } from "@aws-sdk/client-dynamodb";
import { ENTRIES } from "./time-entries.ts";

/** The application's own table. Those of the outbox are made by the stack, or by the command that runs the relays. */
const client = new DynamoDBClient();
await client.send(
  new CreateTableCommand({
    TableName: ENTRIES,
    BillingMode: "PAY_PER_REQUEST",
    AttributeDefinitions: [{ AttributeName: "id", AttributeType: "S" }],
    KeySchema: [{ AttributeName: "id", KeyType: "HASH" }],
  }),
);
await waitUntilTableExists({ client, maxWaitTime: 60, minDelay: 1 }, { TableName: ENTRIES });
client.destroy();
