import { GetQueueAttributesCommand, SendMessageBatchCommand } from "@aws-sdk/client-sqs";
import type { Message } from "../../src/core/event.ts";
import { sqsPublisher } from "../../src/publishers/sqs/sqs-publisher.ts";
import { type ElasticMq, startElasticMq } from "../../test/servers/elasticmq.ts";
import type { PublisherBench } from "./publisher-stand.ts";

const QUEUE = "bench.fifo";
const TOPIC = "bench.event";
const ENTRIES_MAX = 10;

export const sqsBench: PublisherBench = {
  name: "sqs",
  async open() {
    const elasticMq = await startElasticMq();
    const queueUrl = await elasticMq.createQueue(QUEUE);
    const publisher = sqsPublisher({
      region: "eu-central-1",
      queue: QUEUE,
      endpoint: elasticMq.endpoint,
      credentials: { accessKeyId: "local", secretAccessKey: "local" },
      // This server is slower than the service, and here nothing waits for a publish.
      sendTimeoutMs: 60_000,
      requestTimeoutMs: 60_000,
    });
    return {
      publisher,
      topic: TOPIC,
      sendRaw: (batch) => sendRaw(elasticMq, queueUrl, batch),
      async arrived() {
        const asked = { QueueUrl: queueUrl, AttributeNames: ["ApproximateNumberOfMessages" as const] };
        const { Attributes } = await elasticMq.client.send(new GetQueueAttributesCommand(asked));
        return Number(Attributes?.ApproximateNumberOfMessages);
      },
      async [Symbol.asyncDispose]() {
        await publisher.close();
        await elasticMq[Symbol.asyncDispose]();
      },
    };
  },
};

/** All requests of a batch at once; the client's own pool of sockets bounds them. */
async function sendRaw({ client }: ElasticMq, queueUrl: string, batch: readonly Message[]): Promise<void> {
  const requests: Promise<unknown>[] = [];
  for (let at = 0; at < batch.length; at += ENTRIES_MAX) {
    const entries = batch.slice(at, at + ENTRIES_MAX).map(({ event, headers, key, payload }, index) => ({
      Id: String(index),
      MessageBody: payload.toString("utf8"),
      MessageGroupId: key ?? event.id,
      MessageDeduplicationId: event.id,
      MessageAttributes: Object.fromEntries(
        Object.entries({ ...headers, topic: TOPIC, "partition-key": key ?? "-" }).map(([name, value]) => [
          name,
          { DataType: "String", StringValue: value },
        ]),
      ),
    }));
    requests.push(client.send(new SendMessageBatchCommand({ QueueUrl: queueUrl, Entries: entries })));
  }
  await Promise.all(requests);
}
