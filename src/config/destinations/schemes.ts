import { bullmqScheme } from "./bullmq-scheme.ts";
import type { DestinationScheme } from "./destination-scheme.ts";
import { httpScheme } from "./http-scheme.ts";
import { kafkaScheme } from "./kafka-scheme.ts";
import { natsScheme } from "./nats-scheme.ts";
import { discardScheme, stdoutScheme } from "./plain-schemes.ts";
import { rabbitScheme } from "./rabbitmq-scheme.ts";
import { redisScheme } from "./redis-scheme.ts";
import { sqsScheme } from "./sqs-scheme.ts";

/** All kinds of destinations that an address can name, in the order in which messages list them. */
export const SCHEMES: readonly DestinationScheme[] = [
  kafkaScheme,
  httpScheme,
  rabbitScheme,
  natsScheme,
  redisScheme,
  bullmqScheme,
  sqsScheme,
  stdoutScheme,
  discardScheme,
];
