import { randomUUID } from "node:crypto";
import type { DynamoDBStreamsClient } from "@aws-sdk/client-dynamodb-streams";
import type { DynamoDbRunConfig } from "../config/sources/dynamodb-config.ts";
import { systemClock } from "../core/clock.ts";
import { dynamoDbLink } from "../dynamodb/dynamodb-link.ts";
import { dynamodbOutbox } from "../dynamodb/dynamodb-outbox.ts";
import { type ChangeStream, openChangeStream } from "../dynamodb-runner/change-stream.ts";
import { CheckpointTable } from "../dynamodb-runner/checkpoints.ts";
import { findStream, openStreamsClient } from "../dynamodb-runner/stream-client.ts";
import { type IntentHandler, intentHandler } from "../lambda/intent-handler.ts";
import type { IntentEvent, LambdaContext } from "../lambda/lambda-events.ts";
import type { TechnicalEvent } from "../ports/technical-events.ts";
import { TechnicalEventBus } from "../relay/technical-event-bus.ts";
import type { IntentRelay } from "../routing/intent-relay.ts";

/** The connections and handlers that the DynamoDB runner and the recovery share. */
export class DynamoDbParts {
  readonly config: DynamoDbRunConfig;
  readonly bus = new TechnicalEventBus(systemClock);
  /** This process's name in the checkpoints; a new one at each start. */
  readonly self: string;
  readonly link;
  readonly outbox;
  readonly checkpoints;
  readonly handlers: readonly IntentHandler[];
  #streams: DynamoDBStreamsClient | null = null;

  constructor(config: DynamoDbRunConfig) {
    const { checkpointTable, deadLetterTable, instanceName, location, table } = config;
    this.config = config;
    this.self = `${instanceName}/${randomUUID().slice(0, 8)}`;
    this.link = dynamoDbLink(location);
    this.outbox = dynamodbOutbox({ ...location, table, deadLetterTable });
    this.checkpoints = new CheckpointTable(this.link, checkpointTable, this.self);
    this.handlers = config.relays.map(({ relay }) => this.#handlerOf(relay));
  }

  /** The table's current stream. */
  async stream(): Promise<ChangeStream> {
    const { location, table } = this.config;
    const arn = await findStream(this.link, table);
    this.#streams ??= await openStreamsClient(location);
    return await openChangeStream(this.#streams, arn);
  }

  async close(): Promise<void> {
    await Promise.all(this.handlers.map((handler) => handler.close()));
    this.#streams?.destroy();
    await Promise.all([this.outbox.close(), this.link.close()]);
  }

  /** Reports events under the runner's pipeline name, and sums them up for logs and metrics. */
  #handlerOf(relay: IntentRelay): IntentHandler {
    const pipeline = `${this.config.table}/${relay.type}`;
    let sum = { delivered: 0, failed: 0 };
    const report = ({ name, ...event }: TechnicalEvent) => {
      if (name === "IntentRelayed") sum.delivered += 1;
      if (name === "IntentRelayFailed") sum.failed += 1;
      this.bus.emit(name, { ...event, pipeline } as never);
    };
    // Outside AWS no agent turns log lines into metrics, and /metrics counts dead letters.
    const metricLine = () => {};
    const handler = intentHandler(relay, { outbox: this.outbox, env: this.config.env, report, metricLine });
    const handle = async (event: IntentEvent, context: LambdaContext) => {
      const startedMs = performance.now();
      try {
        return await handler(event, context);
      } finally {
        const durationMs = Math.round(performance.now() - startedMs);
        const { delivered, failed } = sum;
        sum = { delivered: 0, failed: 0 };
        if (delivered + failed > 0) {
          this.bus.emit("BatchSettled", { pipeline, lane: 0, delivered, failed, durationMs, latency: null });
        }
      }
    };
    const { addresses, type } = handler;
    return Object.assign(handle, { type, addresses, close: () => handler.close() });
  }
}
