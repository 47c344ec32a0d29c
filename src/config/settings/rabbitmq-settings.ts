import { setting } from "./setting.ts";
import { flag, pem, text, wholeNumber } from "./value-types.ts";

/** Settings of RabbitMQ destinations. */
export const rabbitSettings = {
  RABBITMQ_HOST: setting(
    "destination.rabbitmq.host",
    text(253).optional(),
    "RabbitMQ host as the destination, instead of an amqp:// address",
    { aliases: ["RabbitMq__HostName"] },
  ),
  RABBITMQ_PORT: setting(
    "destination.rabbitmq.port",
    wholeNumber(1, 65_535).optional(),
    "Port of RABBITMQ_HOST; default: 5672, 5671 with TLS",
    { aliases: ["RabbitMq__Port"] },
  ),
  RABBITMQ_EXCHANGE: setting(
    "destination.rabbitmq.exchange",
    text(255).optional(),
    "Topic exchange for the events, if the address names none",
    { aliases: ["RabbitMq__ExchangeName"] },
  ),
  RABBITMQ_USERNAME: setting(
    "destination.rabbitmq.username",
    text().optional(),
    "RabbitMQ user, if the address has none; default: guest",
    { aliases: ["RabbitMq__UserName"] },
  ),
  RABBITMQ_PASSWORD: setting(
    "destination.rabbitmq.password",
    text().optional(),
    "Password of RABBITMQ_USERNAME; default: guest",
    {
      aliases: ["RabbitMq__Password"],
      secret: true,
    },
  ),
  RABBITMQ_VHOST: setting(
    "destination.rabbitmq.vhost",
    text(255).optional(),
    "Virtual host, if the address names none; default: /",
    { aliases: ["RabbitMq__VirtualHost"] },
  ),
  RABBITMQ_DECLARE: setting(
    "destination.rabbitmq.declare",
    flag().optional(),
    "true creates the exchange if it is missing; default: false",
  ),
  RABBITMQ_QUEUE: setting(
    "destination.rabbitmq.queue",
    text(255).optional(),
    "With RABBITMQ_DECLARE: also creates a durable quorum queue of this name that receives everything",
  ),
  RABBITMQ_SSL: setting(
    "destination.rabbitmq.tls.enabled",
    flag().optional(),
    "TLS to RABBITMQ_HOST; default: on if a certificate is set. In an address, write amqps: instead",
  ),
  RABBITMQ_SSL_CA: setting("destination.rabbitmq.tls.ca", pem().optional(), "CA certificates to trust, in PEM", {
    secret: true,
  }),
  RABBITMQ_SSL_CERT: setting("destination.rabbitmq.tls.cert", pem().optional(), "Client certificate, in PEM", {
    secret: true,
  }),
  RABBITMQ_SSL_KEY: setting("destination.rabbitmq.tls.key", pem().optional(), "Key of the client certificate, in PEM", {
    secret: true,
  }),
};
