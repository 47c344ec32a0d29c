export {
  type RabbitPublisherOptions,
  type RabbitTls,
  rabbitPublisher,
} from "./publishers/rabbitmq/rabbitmq-publisher.ts";
