import { type Publisher, stdoutPublisher } from "../../src/index.ts"; // in your project: "outbox-relay"
import { rabbitPublisher } from "../../src/rabbitmq.ts"; // in your project: "outbox-relay/rabbitmq"

/** `amqp://user:password@host:5672`; without an address the events go to standard output. */
export function destinationOf(url: string | undefined): Publisher {
  if (url === undefined || url === "") return stdoutPublisher();
  const { host, username, password } = new URL(url);
  return rabbitPublisher({
    hosts: [host],
    username: decodeURIComponent(username),
    password: decodeURIComponent(password),
    exchange: "shop.events",
    declare: true,
    queue: "shop.mail",
  });
}
