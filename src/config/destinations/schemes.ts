import { discardPublisher } from "../../publishers/discard/discard-publisher.ts";
import { stdoutPublisher } from "../../publishers/stdout/stdout-publisher.ts";
import { bullmqScheme } from "./bullmq-scheme.ts";
import { type DestinationScheme, refuseExactlyOnce } from "./destination-scheme.ts";
import { httpScheme } from "./http-scheme.ts";
import { kafkaScheme } from "./kafka-scheme.ts";
import { natsScheme } from "./nats-scheme.ts";
import { rabbitScheme } from "./rabbitmq-scheme.ts";
import { redisScheme } from "./redis-scheme.ts";
import { sqsScheme } from "./sqs-scheme.ts";

/** Standard output, for a first look. */
const stdoutScheme: DestinationScheme = {
  kind: "stdout",
  schemes: ["stdout"],
  example: "stdout:",
  configure(written) {
    if (!/^stdout:(?:\/\/)?$/i.test(written.address)) {
      written.problems.push(`${written.setting} has text after stdout: write only stdout:`);
      return null;
    }
    refuseExactlyOnce(written, "stdout");
    const { name } = written;
    const options = { name };
    const open = async () => stdoutPublisher(options);
    return { kind: "stdout", name, addresses: [], isExactlyOnce: false, usesStdout: true, warnings: [], options, open };
  },
};

/** Drops events on purpose: a route to it marks them as delivered. */
const discardScheme: DestinationScheme = {
  kind: "discard",
  schemes: ["discard"],
  example: "discard:",
  configure(written) {
    refuseExactlyOnce(written, "discard");
    const { name } = written;
    const options = { name };
    const open = async () => discardPublisher(options);
    return { kind: "discard", name, addresses: [], isExactlyOnce: false, warnings: [], options, open };
  },
};

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
