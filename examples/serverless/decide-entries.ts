import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { dynamodbOutbox } from "../../src/dynamodb-outbox.ts"; // in your project: "outbox-relay/dynamodb"
import { TimeEntries } from "./time-entries.ts";

/** A day at work: two entries are approved, one is rejected. */
const client = new DynamoDBClient();
const entries = new TimeEntries(client, dynamodbOutbox({ client, table: process.env.DYNAMODB_OUTBOX ?? "outbox" }));
await entries.submit("entry-1", { userId: "ann", hours: 8 });
await entries.submit("entry-2", { userId: "ben", hours: 7.5 });
await entries.submit("entry-3", { userId: "cem", hours: 30 });
await entries.approve("entry-1");
await entries.approve("entry-2");
await entries.reject("entry-3", "a day has 24 hours");
console.log("2 entries approved, 1 rejected");
client.destroy();
