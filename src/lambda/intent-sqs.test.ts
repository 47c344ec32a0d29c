import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { type DynamoDb, startDynamoDb } from "../../test/servers/dynamodb.ts";
import { type ElasticMq, SQS_ENVIRONMENT, startElasticMq } from "../../test/servers/elasticmq.ts";
import { RelayError } from "../core/errors.ts";
import { dynamodbOutbox } from "../dynamodb/dynamodb-outbox.ts";
import { createTables } from "../dynamodb/tables.ts";
import { insertRecord } from "../dynamodb-runner/lambda-record.ts";
import { intentHandler } from "./intent-handler.ts";

let dynamodb: DynamoDb;
let sqs: ElasticMq;

before(async () => {
  // The SDK of the destination finds them where a function has them.
  Object.assign(process.env, SQS_ENVIRONMENT);
  [dynamodb, sqs] = await Promise.all([startDynamoDb(), startElasticMq()]);
});

after(async () => {
  await sqs?.[Symbol.asyncDispose]();
  await dynamodb?.[Symbol.asyncDispose]();
});

test("D4 D8 an intent that is sent twice, because it could not be marked, is in a FIFO queue once", async () => {
  const credentials = { accessKeyId: "local", secretAccessKey: "local" };
  const client = new DynamoDBClient({ endpoint: dynamodb.endpoint, region: "eu-central-1", credentials });
  await createTables(client);
  const queueUrl = await sqs.createQueue("payroll.fifo");
  const outbox = dynamodbOutbox({ client });
  let isBroken = true;
  const handler = intentHandler(
    {
      type: "SyncToPayroll",
      target: { url: `sqs://eu-central-1/payroll.fifo?endpoint=${encodeURIComponent(sqs.endpoint)}` },
      translate: (intent) => ({ body: { hours: intent.json() } }),
    },
    {
      env: {},
      report: () => {},
      outbox: {
        ...outbox,
        async markDelivered(id, at) {
          if (isBroken) throw new RelayError("DATABASE_UNREACHABLE", "away");
          return await outbox.markDelivered(id, at);
        },
      },
    },
  );
  const intents = [1, 2, 3].map((hours) => ({ type: "SyncToPayroll", key: "u-1", payload: String(hours) }));
  const ids = await outbox.write(intents);
  const found = await outbox.read(ids);
  const Records = ids.map((id, index) => insertRecord(found.get(id)!.item, "arn:aws:dynamodb:stream", `${index}`));
  const context = { getRemainingTimeInMillis: () => 30_000 };
  assert.equal((await handler({ Records }, context)).batchItemFailures.length, 3);
  isBroken = false;
  assert.deepEqual(await handler({ Records }, context), { batchItemFailures: [] });
  const messages = await sqs.drain(queueUrl);
  assert.deepEqual(
    messages.map(({ Attributes }) => Attributes?.MessageDeduplicationId),
    ids,
  );
  const bodies = ids.map((id, index) => ({ hours: index + 1, idempotency_key: id }));
  assert.deepEqual(
    messages.map(({ Body }) => JSON.parse(Body!)),
    bodies,
  );
  await handler.close();
  client.destroy();
});
