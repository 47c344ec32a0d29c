import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { optionalClient } from "../core/optional-client.ts";
import { translateError } from "./dynamodb-errors.ts";

type Sdk = typeof import("@aws-sdk/client-dynamodb");

const CONNECT_TIMEOUT_MS = 2_000;
/** DynamoDB answers within milliseconds, and the SDK makes three attempts. */
const REQUEST_TIMEOUT_MS = 3_000;
const SOCKETS_MAX = 64;

/** How to reach DynamoDB. Without settings the SDK finds its own. */
export interface DynamoDbConnection {
  /** Your own client; the outbox does not close it. */
  readonly client?: DynamoDBClient;
  /** Default for this and the next settings: what the SDK finds. */
  readonly region?: string;
  readonly endpoint?: string;
  readonly credentials?: { readonly accessKeyId: string; readonly secretAccessKey: string };
}

/** Requests to DynamoDB with translated errors. */
export interface DynamoDbLink {
  /** Sends one request. Throws RelayError, with DynamoDB's own error as its cause. */
  send<Output>(doing: string, request: (client: DynamoDBClient, sdk: Sdk) => Promise<Output>): Promise<Output>;
  /** Closes the client if it was opened here. */
  close(): Promise<void>;
}

/**
 * Opens nothing before the first request. The SDK is an optional peer dependency: without it the error says what to
 * install.
 */
export function dynamoDbLink(connection: DynamoDbConnection): DynamoDbLink {
  let opening: Promise<{ readonly client: DynamoDBClient; readonly sdk: Sdk }> | undefined;

  async function open() {
    const sdk = await load();
    return { sdk, client: connection.client ?? new sdk.DynamoDBClient(settingsOf(connection)) };
  }

  return {
    async send(doing, request) {
      opening ??= open();
      const { client, sdk } = await opening;
      try {
        return await request(client, sdk);
      } catch (error) {
        throw translateError(error, doing);
      }
    },
    async close() {
      const opened = await opening?.catch(() => undefined);
      if (connection.client === undefined) opened?.client.destroy();
    },
  };
}

const load = optionalClient(
  "the DynamoDB client",
  "@aws-sdk/client-dynamodb@3",
  () => import("@aws-sdk/client-dynamodb"),
);

function settingsOf({ credentials, endpoint, region }: DynamoDbConnection) {
  const agent = { keepAlive: true, maxSockets: SOCKETS_MAX };
  return {
    requestHandler: {
      connectionTimeout: CONNECT_TIMEOUT_MS,
      requestTimeout: REQUEST_TIMEOUT_MS,
      throwOnRequestTimeout: true,
      httpAgent: agent,
      httpsAgent: agent,
    },
    ...(region === undefined ? {} : { region }),
    ...(endpoint === undefined ? {} : { endpoint }),
    ...(credentials === undefined ? {} : { credentials }),
  };
}
