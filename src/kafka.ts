export {
  type KafkaPublisherOptions,
  type KafkaSasl,
  type KafkaTls,
  kafkaPublisher,
} from "./publishers/kafka/kafka-publisher.ts";
