import { RelayError } from "../core/errors.ts";
import type { DynamoDbLink } from "../dynamodb/dynamodb-link.ts";

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
