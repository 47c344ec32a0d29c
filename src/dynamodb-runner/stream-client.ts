import type { DynamoDBStreamsClient } from "@aws-sdk/client-dynamodb-streams";
import { RelayError } from "../core/errors.ts";

type Streams = typeof import("@aws-sdk/client-dynamodb-streams");

const INSTALL = "npm install @aws-sdk/client-dynamodb-streams@3";
const CONNECT_TIMEOUT_MS = 2_000;
const REQUEST_TIMEOUT_MS = 5_000;

let loading: Promise<Streams> | undefined;

/** The client is an optional peer dependency: without it the error says what to install. */
export function loadStreams(): Promise<Streams> {
  loading ??= import("@aws-sdk/client-dynamodb-streams").catch((cause: unknown) => {
    throw new RelayError("CONFIG_INVALID", `the DynamoDB Streams client is missing, install it: ${INSTALL}.`, {
      cause,
    });
  });
  return loading;
}

interface StreamServer {
  readonly region?: string;
  /** A server other than AWS: `http://host:port`. */
  readonly endpoint?: string;
}

/** Opens a client of DynamoDB Streams. */
export async function openStreamsClient({ endpoint, region }: StreamServer): Promise<DynamoDBStreamsClient> {
  const { DynamoDBStreamsClient } = await loadStreams();
  return new DynamoDBStreamsClient({
    // The reader decides what to retry, and when.
    maxAttempts: 1,
    requestHandler: {
      connectionTimeout: CONNECT_TIMEOUT_MS,
      requestTimeout: REQUEST_TIMEOUT_MS,
      throwOnRequestTimeout: true,
    },
    ...(region === undefined ? {} : { region }),
    ...(endpoint === undefined ? {} : { endpoint }),
  });
}
