import { setting } from "./setting.ts";
import { flag, pem, text, wholeNumber } from "./value-types.ts";

export const rabbitSettings = {
  RABBITMQ_HOST: setting(
    "destination.rabbitmq.host",
    text(253).optional(),
    "A RabbitMQ server as the destination, instead of an address amqp://...",
    { aliases: ["RabbitMq__HostName"] },
  ),
  RABBITMQ_PORT: setting(
    "destination.rabbitmq.port",
    wholeNumber(1, 65_535).optional(),
    "Its port; 5672 by default, 5671 with TLS",
    { aliases: ["RabbitMq__Port"] },
  ),
  RABBITMQ_EXCHANGE: setting(
    "destination.rabbitmq.exchange",
    text(255).optional(),
    "The topic exchange that takes the events, where the address names none",
    { aliases: ["RabbitMq__ExchangeName"] },
  ),
  RABBITMQ_USERNAME: setting(
    "destination.rabbitmq.username",
    text().optional(),
    "The user at RabbitMQ, where the address has none; guest by default",
    { aliases: ["RabbitMq__UserName"] },
  ),
  RABBITMQ_PASSWORD: setting("destination.rabbitmq.password", text().optional(), "Its password; guest by default", {
    aliases: ["RabbitMq__Password"],
    secret: true,
  }),
  RABBITMQ_VHOST: setting(
    "destination.rabbitmq.vhost",
    text(255).optional(),
    "The virtual host, where the address names none; / by default",
    { aliases: ["RabbitMq__VirtualHost"] },
  ),
  RABBITMQ_DECLARE: setting(
    "destination.rabbitmq.declare",
    flag().optional(),
    "true creates the exchange where it is missing; false by default",
  ),
  RABBITMQ_QUEUE: setting(
    "destination.rabbitmq.queue",
    text(255).optional(),
    "With RABBITMQ_DECLARE: a durable quorum queue of this name too, which takes everything",
  ),
  RABBITMQ_SSL: setting(
    "destination.rabbitmq.tls.enabled",
    flag().optional(),
    "TLS to RABBITMQ_HOST; on when one of the certificates is given. An address says amqps: instead",
  ),
  RABBITMQ_SSL_CA: setting("destination.rabbitmq.tls.ca", pem().optional(), "The certificates to trust, in PEM", {
    secret: true,
  }),
  RABBITMQ_SSL_CERT: setting("destination.rabbitmq.tls.cert", pem().optional(), "The relay's own certificate, in PEM", {
    secret: true,
  }),
  RABBITMQ_SSL_KEY: setting("destination.rabbitmq.tls.key", pem().optional(), "Its key, in PEM", { secret: true }),
};
