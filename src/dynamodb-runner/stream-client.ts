import type { DynamoDBStreamsClient } from "@aws-sdk/client-dynamodb-streams";
import { RelayError } from "../core/errors.ts";
import { optionalClient } from "../core/optional-client.ts";
import type { DynamoDbLink } from "../dynamodb/dynamodb-link.ts";

const CONNECT_TIMEOUT_MS = 2_000;
const REQUEST_TIMEOUT_MS = 5_000;

export const loadStreams: () => Promise<typeof import("@aws-sdk/client-dynamodb-streams")> = optionalClient(
  "the DynamoDB Streams client",
  "@aws-sdk/client-dynamodb-streams@3",
  () => import("@aws-sdk/client-dynamodb-streams"),
);

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

const WITH_NEW_IMAGE: readonly unknown[] = ["NEW_IMAGE", "NEW_AND_OLD_IMAGES"];

/** The ARN of the table's stream. Throws CONFIG_INVALID when there is none or it does not contain the written items. */
export async function findStream(link: DynamoDbLink, table: string): Promise<string> {
  const { Table } = await link.send(`reading the stream of ${table}`, (client, sdk) =>
    client.send(new sdk.DescribeTableCommand({ TableName: table })),
  );
  const { LatestStreamArn: arn, StreamSpecification: stream } = Table ?? {};
  if (arn === undefined || stream?.StreamEnabled !== true) {
    throw new RelayError("CONFIG_INVALID", `The table ${table} has no stream: enable one with NEW_AND_OLD_IMAGES.`);
  }
  if (!WITH_NEW_IMAGE.includes(stream.StreamViewType)) {
    const what = `The stream of ${table} has the view type ${stream.StreamViewType}, which does not contain the written items`;
    throw new RelayError("CONFIG_INVALID", `${what}: enable one with NEW_AND_OLD_IMAGES.`);
  }
  return arn;
}
