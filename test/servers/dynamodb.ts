import { mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { freePort } from "./free-port.ts";
import { mavenClassPath } from "./maven-jars.ts";
import { startPlainServer } from "./plain-server.ts";
import type { ServerProcess } from "./server-process.ts";

const VERSION = "2.6.1";

/** What a client needs; the server believes everybody. */
export const DYNAMODB_ENVIRONMENT = {
  AWS_REGION: "eu-central-1",
  AWS_ACCESS_KEY_ID: "local",
  AWS_SECRET_ACCESS_KEY: "local",
};

/**
 * A DynamoDB with streams of our own. Tables, streams and their records lie in its folder and survive a kill. The
 * server cannot be told to listen on 127.0.0.1 alone.
 */
export type DynamoDb = ServerProcess & { readonly endpoint: string; readonly port: number };

export async function startDynamoDb(): Promise<DynamoDb> {
  const classPath = await dynamoDbClassPath();
  const port = await freePort();
  const endpoint = `http://127.0.0.1:${port}`;
  const server = await startPlainServer({
    name: "dynamodb",
    prepare(folder) {
      mkdirSync(join(folder, "data"));
    },
    command: (folder) => ({
      program: "java",
      args: [
        ...["-Xmx256m", "-XX:TieredStopAtLevel=1", `-Djava.library.path=${dirname(classPath)}`],
        ...["-cp", classPath, "com.amazonaws.services.dynamodbv2.local.main.ServerRunner"],
        ...["-port", String(port), "-dbPath", join(folder, "data"), "-sharedDb", "-disableTelemetry"],
      ],
    }),
    // A stranger without a signature is told off, and that is an answer.
    isReady: async () => (await fetch(endpoint)).status === 400,
  });
  return Object.assign(server, { endpoint, port });
}

export function dynamoDbClassPath(): Promise<string> {
  return mavenClassPath("dynamodb", VERSION, [["com.amazonaws", "DynamoDBLocal", VERSION]]);
}
