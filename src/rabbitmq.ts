export type { TlsOptions, TlsOptionsWithPassphrase } from "./core/tls.ts";
export {
  type RabbitPublisherOptions,
  type RabbitTls,
  rabbitPublisher,
} from "./publishers/rabbitmq/rabbitmq-publisher.ts";
