import type { Publisher } from "../ports/publisher.ts";
import { stdoutPublisher } from "../publishers/stdout/stdout-publisher.ts";
import type { DestinationConfig } from "./destination-config.ts";

/** Makes the publisher. A broker's client is loaded only when it is used; without it the error says what to install. */
export async function openDestination(config: DestinationConfig): Promise<Publisher> {
  if (config.kind === "stdout") return stdoutPublisher({ name: config.name });
  if (config.kind === "given") return await config.open();
  const { loadKafka } = await import("../publishers/kafka/kafka-client.ts");
  await loadKafka();
  const { kafkaPublisher } = await import("../publishers/kafka/kafka-publisher.ts");
  return kafkaPublisher(config.options);
}

/** Addresses that answer when the destination is there at all. */
export function brokersOf(config: DestinationConfig): readonly string[] {
  return config.kind === "kafka" ? config.options.brokers : [];
}
