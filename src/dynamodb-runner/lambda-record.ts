import type { AttributeValue } from "@aws-sdk/client-dynamodb-streams";
import type { StreamAttribute, StreamRecord } from "../lambda/lambda-events.ts";
import type { Change } from "./change-stream.ts";

type Image = Readonly<Record<string, AttributeValue>>;

/** A change as AWS passes it to a function: plain JSON, bytes as base64, the time in seconds. */
export function lambdaRecord(change: Change, streamArn: string): StreamRecord {
  const { dynamodb = {} } = change;
  const { ApproximateCreationDateTime: at, Keys, NewImage, OldImage } = dynamodb;
  return {
    ...change,
    eventSource: "aws:dynamodb",
    ...{ eventSourceARN: streamArn },
    dynamodb: {
      ...dynamodb,
      ...(at === undefined ? {} : { ApproximateCreationDateTime: Math.floor(at.getTime() / 1_000) }),
      Keys: Keys === undefined ? undefined : lambdaImage(Keys),
      NewImage: NewImage === undefined ? undefined : lambdaImage(NewImage),
      OldImage: OldImage === undefined ? undefined : lambdaImage(OldImage),
    },
  };
}

/** A record as if the item had just been written. */
export function insertRecord(item: Image, streamArn: string, sequenceNumber: string): StreamRecord {
  const { id } = item;
  return {
    eventName: "INSERT",
    eventSource: "aws:dynamodb",
    ...{ eventSourceARN: streamArn },
    dynamodb: {
      Keys: id === undefined ? {} : lambdaImage({ id }),
      NewImage: lambdaImage(item),
      SequenceNumber: sequenceNumber,
    },
  };
}

function lambdaImage(image: Image): Record<string, StreamAttribute> {
  return Object.fromEntries(Object.entries(image).map(([name, value]) => [name, lambdaValue(value)]));
}

function lambdaValue(value: AttributeValue): StreamAttribute {
  if (value.B !== undefined) return { B: base64(value.B) };
  if (value.BS !== undefined) return { BS: value.BS.map(base64) };
  if (value.L !== undefined) return { L: value.L.map(lambdaValue) };
  if (value.M !== undefined) return { M: lambdaImage(value.M) };
  return { ...value };
}

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("base64");
}
