import { writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  CreateQueueCommand,
  DeleteMessageBatchCommand,
  type Message as QueuedMessage,
  ReceiveMessageCommand,
  SQSClient,
} from "@aws-sdk/client-sqs";
import { freePort } from "./free-port.ts";
import { mavenClassPath } from "./maven-jars.ts";
import { startPlainServer } from "./plain-server.ts";
import type { ServerProcess } from "./server-process.ts";

const VERSION = "1.7.1";
const REGION = "eu-central-1";

/** What a client needs; the server believes everybody. */
export const SQS_ENVIRONMENT = { AWS_ACCESS_KEY_ID: "local", AWS_SECRET_ACCESS_KEY: "local" };

/** An SQS of our own on 127.0.0.1. It keeps everything in memory: a kill loses the queues. */
export type ElasticMq = ServerProcess & {
  readonly port: number;
  readonly endpoint: string;
  readonly client: SQSClient;
  createQueue(name: string): Promise<string>;
  /** Takes out all that lies in a queue, in the order in which a consumer gets it. */
  drain(queueUrl: string): Promise<readonly QueuedMessage[]>;
};

export async function startElasticMq(): Promise<ElasticMq> {
  const classPath = await elasticMqClassPath();
  const port = await freePort();
  const endpoint = `http://127.0.0.1:${port}`;
  const server = await startPlainServer({
    name: "elasticmq",
    prepare(folder) {
      writeFileSync(join(folder, "elasticmq.conf"), configFor(port));
    },
    command: (folder) => ({
      program: "java",
      args: [
        ...["-Xmx256m", "-XX:TieredStopAtLevel=1", `-Dconfig.file=${join(folder, "elasticmq.conf")}`],
        ...["-cp", classPath, "org.elasticmq.server.Main"],
      ],
    }),
    isReady: async () => (await fetch(`${endpoint}/health`)).ok,
  });
  const credentials = { accessKeyId: "local", secretAccessKey: "local" };
  const client = new SQSClient({ endpoint, region: REGION, credentials, useQueueUrlAsEndpoint: false });
  const dispose = server[Symbol.asyncDispose].bind(server);
  return Object.assign(server, {
    port,
    endpoint,
    client,
    createQueue: (name: string) => createQueue(client, name),
    drain: (queueUrl: string) => drain(client, queueUrl),
    async [Symbol.asyncDispose]() {
      client.destroy();
      await dispose();
    },
  });
}

export function elasticMqClassPath(): Promise<string> {
  return mavenClassPath("elasticmq", VERSION, [["org.elasticmq", "elasticmq-server_2.13", VERSION]]);
}

function configFor(port: number): string {
  return `include classpath("application.conf")
node-address { protocol = http, host = localhost, port = ${port}, context-path = "" }
rest-sqs { enabled = true, bind-port = ${port}, bind-hostname = "127.0.0.1", sqs-limits = strict }
rest-stats { enabled = false }
generate-node-address = false
`;
}

async function createQueue(client: SQSClient, name: string): Promise<string> {
  const attributes = name.endsWith(".fifo") ? { Attributes: { FifoQueue: "true" } } : {};
  const { QueueUrl } = await client.send(new CreateQueueCommand({ QueueName: name, ...attributes }));
  return QueueUrl!;
}

async function drain(client: SQSClient, queueUrl: string): Promise<readonly QueuedMessage[]> {
  const taken: QueuedMessage[] = [];
  for (;;) {
    const wanted = {
      MaxNumberOfMessages: 10,
      MessageAttributeNames: ["All"],
      MessageSystemAttributeNames: ["All" as const],
    };
    const { Messages = [] } = await client.send(new ReceiveMessageCommand({ QueueUrl: queueUrl, ...wanted }));
    if (Messages.length === 0) return taken;
    taken.push(...Messages);
    const entries = Messages.map(({ ReceiptHandle }, index) => ({ Id: String(index), ReceiptHandle }));
    await client.send(new DeleteMessageBatchCommand({ QueueUrl: queueUrl, Entries: entries }));
  }
}
