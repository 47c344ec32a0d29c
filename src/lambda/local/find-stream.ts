import { RelayError } from "../../core/errors.ts";
import type { DynamoDbLink } from "../../dynamodb/dynamodb-link.ts";

const WITH_NEW_IMAGE: readonly unknown[] = ["NEW_IMAGE", "NEW_AND_OLD_IMAGES"];

/** The address of the table's stream. Throws CONFIG_INVALID where it has none that shows what was written. */
export async function findStream(link: DynamoDbLink, table: string): Promise<string> {
  const { Table } = await link.send(`looking for the stream of ${table}`, (client, sdk) =>
    client.send(new sdk.DescribeTableCommand({ TableName: table })),
  );
  const { LatestStreamArn: arn, StreamSpecification: stream } = Table ?? {};
  if (arn === undefined || stream?.StreamEnabled !== true) {
    throw new RelayError("CONFIG_INVALID", `The table ${table} has no stream: switch one on, with NEW_AND_OLD_IMAGES.`);
  }
  if (!WITH_NEW_IMAGE.includes(stream.StreamViewType)) {
    const what = `The stream of ${table} shows ${stream.StreamViewType} and not what was written`;
    throw new RelayError("CONFIG_INVALID", `${what}: switch one on with NEW_AND_OLD_IMAGES.`);
  }
  return arn;
}
