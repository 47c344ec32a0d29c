import { destroyClient, loadKafka, openClient } from "./kafka-client.ts";
import { type KafkaPublisherOptions, kafkaSettings } from "./kafka-config.ts";
import { describeCode } from "./kafka-error-codes.ts";
import { Topics } from "./kafka-topics.ts";

/** The topics that cannot be written to, and why. Creates none. */
export async function missingTopics(
  options: KafkaPublisherOptions,
  topics: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const kafka = await loadKafka();
  const settings = { ...kafkaSettings(options), creation: null, autoCreate: false };
  const client = openClient(kafka, settings);
  try {
    const failures = await new Topics(kafka, settings).lookUp(client, topics);
    return new Map([...failures].map(([topic, { code, message }]) => [topic, message ?? describeCode(code)]));
  } finally {
    await destroyClient(client);
  }
}
