import { randomUUID } from "node:crypto";
import type { DynamoDBStreamsClient } from "@aws-sdk/client-dynamodb-streams";
import type { DynamoDbRunConfig } from "../config/dynamodb-config.ts";
import { systemClock } from "../core/clock.ts";
import { dynamoDbLink } from "../dynamodb/dynamodb-link.ts";
import { dynamodbOutbox } from "../dynamodb/dynamodb-outbox.ts";
import { type IntentHandler, intentHandler } from "../lambda/intent-handler.ts";
import type { IntentEvent, LambdaContext } from "../lambda/lambda-events.ts";
import { type ChangeStream, openChangeStream } from "../lambda/local/change-stream.ts";
import { CheckpointTable } from "../lambda/local/checkpoints.ts";
import { findStream } from "../lambda/local/find-stream.ts";
import { openStreamsClient } from "../lambda/local/stream-client.ts";
import type { TechnicalEvent } from "../ports/technical-events.ts";
import { TechnicalEventBus } from "../relay/technical-event-bus.ts";
import type { IntentRelay } from "../routing/intent-relay.ts";

/** What the runner and the recovery work with. */
export class DynamoDbParts {
  readonly config: DynamoDbRunConfig;
  readonly bus = new TechnicalEventBus(systemClock);
  /** This process in the checkpoints: of its own at each start. */
  readonly self: string;
  readonly link;
  readonly outbox;
  readonly checkpoints;
  readonly handlers: readonly IntentHandler[];
  #streams: DynamoDBStreamsClient | null = null;

  constructor(config: DynamoDbRunConfig) {
    const { checkpointTable, deadLetterTable, instanceName, place, table } = config;
    this.config = config;
    this.self = `${instanceName}/${randomUUID().slice(0, 8)}`;
    this.link = dynamoDbLink(place);
    this.outbox = dynamodbOutbox({ ...place, table, deadLetterTable });
    this.checkpoints = new CheckpointTable(this.link, checkpointTable, this.self);
    this.handlers = config.relays.map(({ relay }) => this.#handlerOf(relay));
  }

  /** The table's stream of the moment. */
  async stream(): Promise<ChangeStream> {
    const { place, table } = this.config;
    const arn = await findStream(this.link, table);
    this.#streams ??= await openStreamsClient(place);
    return await openChangeStream(this.#streams, arn);
  }

  async close(): Promise<void> {
    await Promise.all(this.handlers.map((handler) => handler.close()));
    this.#streams?.destroy();
    await Promise.all([this.outbox.close(), this.link.close()]);
  }

  /** Under the runner's name of the pipeline, and with the sums that logs and metrics are made of. */
  #handlerOf(relay: IntentRelay): IntentHandler {
    const pipeline = `${this.config.table}/${relay.type}`;
    let sum = { delivered: 0, failed: 0 };
    const report = ({ name, ...event }: TechnicalEvent) => {
      if (name === "IntentRelayed") sum.delivered += 1;
      if (name === "IntentRelayFailed") sum.failed += 1;
      this.bus.emit(name, { ...event, pipeline } as never);
    };
    // Beyond AWS nobody makes a metric of lines, and /metrics counts dead letters.
    const metricLine = () => {};
    const handler = intentHandler(relay, { outbox: this.outbox, env: this.config.env, report, metricLine });
    const handle = async (event: IntentEvent, context: LambdaContext) => {
      const beganMs = performance.now();
      try {
        return await handler(event, context);
      } finally {
        const durationMs = Math.round(performance.now() - beganMs);
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
