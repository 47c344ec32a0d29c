export type { TlsOptions, TlsOptionsWithPassphrase } from "./core/tls.ts";
export {
  type KafkaCompression,
  type KafkaPublisherOptions,
  type KafkaSasl,
  type KafkaTls,
  kafkaPublisher,
} from "./publishers/kafka/kafka-publisher.ts";
