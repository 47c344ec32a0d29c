/** Versions of one client that the suites of its adapter run against, the oldest first. */
export interface Client {
  readonly name: string;
  /** What each scratch application installs beside outbox-relay. */
  readonly pairs: readonly (readonly string[])[];
  /** Entries of outbox-relay that are loaded there. */
  readonly entries: readonly string[];
  readonly suites: readonly string[];
  /** The tests hand their own client over, or its errors, so that theirs is the one under test. */
  readonly inTests?: true;
}

const otel = (api: string, sdk: string, exporter: string) => [
  `@opentelemetry/api@${api}`,
  `@opentelemetry/sdk-trace@${sdk}`,
  `@opentelemetry/resources@${sdk}`,
  `@opentelemetry/exporter-trace-otlp-http@${exporter}`,
];

const publisher = (name: string, ...more: readonly string[]) =>
  ["contract", ...more].map((part) => `src/publishers/${name}/${name}-${part}.test.ts`);

export const CLIENTS: readonly Client[] = [
  {
    name: "Redis",
    pairs: [["ioredis@5.3.0"], ["ioredis@5"], ["ioredis@6"]],
    entries: ["redis", "redis-outbox"],
    suites: [
      ...publisher("redis", "publisher"),
      "src/sources/redis/redis-contract.test.ts",
      "src/sources/redis/redis-outbox.test.ts",
    ],
  },
  {
    name: "BullMQ",
    pairs: [
      ["bullmq@5.30.0", "ioredis@5.3.2"],
      ["bullmq@5", "ioredis@5"],
      ["bullmq@6.0.1", "ioredis@5"],
      ["bullmq@6", "ioredis@6"],
    ],
    entries: ["bullmq", "worker"],
    suites: [
      ...publisher("bullmq", "publisher"),
      "src/publishers/bullmq/request-batch.test.ts",
      "src/publishers/bullmq/request-queue.test.ts",
    ],
  },
  {
    name: "RabbitMQ",
    pairs: [["amqplib@0.10.0"], ["amqplib@0.10"], ["amqplib@1"], ["amqplib@2"]],
    entries: ["rabbitmq"],
    suites: publisher("rabbitmq", "publisher"),
  },
  {
    name: "NATS",
    pairs: [["@nats-io/transport-node@3.0.0"], ["@nats-io/transport-node@3"]],
    entries: ["nats"],
    suites: publisher("nats", "faults", "security"),
  },
  {
    name: "SQS",
    pairs: [["@aws-sdk/client-sqs@3.693.0"], ["@aws-sdk/client-sqs@3.716.0"], ["@aws-sdk/client-sqs@3"]],
    entries: ["sqs"],
    suites: publisher("sqs", "faults"),
  },
  {
    name: "DynamoDB",
    pairs: [
      ["@aws-sdk/client-dynamodb@3.692.0", "@aws-sdk/client-dynamodb-streams@3.692.0"],
      ["@aws-sdk/client-dynamodb@3", "@aws-sdk/client-dynamodb-streams@3"],
    ],
    entries: ["dynamodb", "lambda"],
    suites: ["src/dynamodb/dynamodb-outbox.test.ts", "src/dynamodb-runner/local-runner.test.ts"],
    inTests: true,
  },
  {
    name: "KurrentDB",
    pairs: [["@kurrent/kurrentdb-client@1.1.0"], ["@kurrent/kurrentdb-client@1"]],
    entries: ["kurrentdb"],
    suites: ["src/sources/kurrentdb/kurrentdb-source.test.ts", "src/sources/kurrentdb/kurrentdb-outages.test.ts"],
  },
  {
    name: "OpenTelemetry",
    pairs: [otel("1.3.0", "2.9.0", "0.220.0"), otel("1.9.0", "2", "0.223"), otel("1", "3", "0.301")],
    entries: ["outbox"],
    suites: ["src/telemetry/tracing/event-sampler.test.ts", "src/telemetry/tracing/traced-publisher.test.ts"],
  },
  {
    name: "Kafka",
    pairs: [["@platformatic/kafka@2.12.0"], ["@platformatic/kafka@2.12"]],
    entries: ["kafka"],
    suites: publisher("kafka", "publisher", "transactions"),
  },
  {
    name: "NestJS",
    pairs: ["11.0.0", "12.5"].map((nest) => [
      `@nestjs/common@${nest}`,
      `@nestjs/core@${nest}`,
      "reflect-metadata@0.2",
      "rxjs@7",
    ]),
    entries: ["nestjs"],
    suites: ["test/nestjs/nestjs.test.ts"],
    inTests: true,
  },
  {
    name: "PostgreSQL (writer and inbox)",
    pairs: [["pg@8.11.0"], ["pg@8"]],
    entries: ["outbox", "inbox"],
    suites: ["src/outbox/managed.test.ts", "src/inbox/inbox.test.ts"],
    inTests: true,
  },
];
