import type { Publisher } from "../ports/publisher.ts";
import type { PipelineContext } from "./context.ts";

/** How the messages of one lane reach the destination. */
export interface Sender {
  /** True when several events of a key may be in one publish. */
  readonly manyOfKey: boolean;
  /** Publishes at a time. */
  readonly publishesMax: number;
  /** True when the sender times out the steps of a publish itself. */
  readonly keepsTime: boolean;
  /** True when the publisher times its requests itself. */
  readonly timesRequests: boolean;
  /** Like `Publisher.publish`. */
  readonly publish: Publisher["publish"];
}

/** Sends by `Publisher.publish`: at least once, without transactions. */
export function plainSender({ destination, limits }: PipelineContext): Sender {
  const { publisher } = destination;
  return {
    manyOfKey: publisher.capabilities.keyOrderInBatch,
    publishesMax: limits.publishesPerLane,
    keepsTime: false,
    timesRequests: publisher.capabilities.timesRequests === true,
    publish: (batch, report, signal, timer) => publisher.publish(batch, report, signal, timer),
  };
}
