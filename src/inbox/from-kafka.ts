import { type InboxMessage, inboxMessage, textHeaders } from "./inbox-message.ts";

/** Text, or its bytes. */
export type KafkaBytes = Uint8Array | string;

/** A record of @platformatic/kafka, kafkajs, @confluentinc/kafka-javascript or node-rdkafka, by its shape. */
export interface KafkaRecord {
  readonly topic?: string;
  readonly key?: KafkaBytes | null | undefined;
  readonly value?: KafkaBytes | null | undefined;
  readonly headers?:
    | ReadonlyMap<KafkaBytes, KafkaBytes>
    | Readonly<Record<string, KafkaBytes | readonly KafkaBytes[] | undefined>>
    | readonly Readonly<Record<string, KafkaBytes>>[]
    | undefined;
}

/**
 * A record as a message for `consume`. Its type is that of a CloudEvent, else the topic, which some clients give beside the
 * record: `fromKafka(message, topic)`.
 */
export function fromKafka(record: KafkaRecord, topic: string | undefined = record.topic): InboxMessage {
  const headers = textHeaders(entriesOf(record.headers));
  return inboxMessage("Kafka", {
    id: headers["event-id"],
    type: headers.ce_type ?? headers["ce-type"] ?? topic,
    key: record.key === null || record.key === undefined ? null : bytesOf(record.key).toString("utf8"),
    headers,
    payload: bytesOf(record.value ?? ""),
  });
}

function* entriesOf(headers: KafkaRecord["headers"]): Iterable<readonly [unknown, unknown]> {
  if (headers === undefined) return;
  if (headers instanceof Map) yield* headers;
  else if (Array.isArray(headers)) for (const header of headers) yield* Object.entries(header);
  else yield* Object.entries(headers);
}

function bytesOf(bytes: KafkaBytes): Buffer {
  return typeof bytes === "string" ? Buffer.from(bytes, "utf8") : Buffer.from(bytes);
}
