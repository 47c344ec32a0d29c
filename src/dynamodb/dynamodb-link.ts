import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { RelayError } from "../core/errors.ts";
import { translateError } from "./dynamodb-errors.ts";

type Sdk = typeof import("@aws-sdk/client-dynamodb");

const INSTALL = "npm install @aws-sdk/client-dynamodb@3.1162.0";
const CONNECT_TIMEOUT_MS = 2_000;
/** DynamoDB answers within milliseconds; the SDK tries three times. */
const REQUEST_TIMEOUT_MS = 3_000;
const SOCKETS_MAX = 64;

export interface DynamoDbPlace {
  /** Your own client; it is not closed here. */
  readonly client?: DynamoDBClient;
  /** Absent: what the SDK finds, as for all of these. */
  readonly region?: string;
  readonly endpoint?: string;
  readonly credentials?: { readonly accessKeyId: string; readonly secretAccessKey: string };
}

export interface DynamoDbLink {
  /** Sends one request. Throws RelayError, with DynamoDB's own error as its cause. */
  send<Output>(doing: string, request: (client: DynamoDBClient, sdk: Sdk) => Promise<Output>): Promise<Output>;
  /** Closes the client if it was opened here. */
  close(): Promise<void>;
}

/** Opens nothing before the first request. The SDK is an optional peer; without it the error says what to install. */
export function dynamoDbLink(place: DynamoDbPlace): DynamoDbLink {
  let opening: Promise<{ readonly client: DynamoDBClient; readonly sdk: Sdk }> | undefined;

  async function open() {
    const sdk = await load();
    return { sdk, client: place.client ?? new sdk.DynamoDBClient(settingsOf(place)) };
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
      if (place.client === undefined) opened?.client.destroy();
    },
  };
}

let loading: Promise<Sdk> | undefined;

function load(): Promise<Sdk> {
  loading ??= import("@aws-sdk/client-dynamodb").catch((cause: unknown) => {
    throw new RelayError("CONFIG_INVALID", `the DynamoDB client is missing, install it: ${INSTALL}.`, { cause });
  });
  return loading;
}

function settingsOf({ credentials, endpoint, region }: DynamoDbPlace) {
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
