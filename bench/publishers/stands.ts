import { bullmqBench } from "./bullmq-stand.ts";
import { httpBench } from "./http-stand.ts";
import { natsBench } from "./nats-stand.ts";
import type { PublisherBench } from "./publisher-stand.ts";
import { rabbitBench } from "./rabbitmq-stand.ts";
import { redisBench } from "./redis-stand.ts";
import { sqsBench } from "./sqs-stand.ts";

/** Kafka is measured by drain-kafka, against the raw limits of the whole way. */
export const STANDS: readonly PublisherBench[] = [rabbitBench, natsBench, redisBench, bullmqBench, httpBench, sqsBench];
