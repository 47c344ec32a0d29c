import type { Publisher } from "../ports/publisher.ts";
import type { PipelineContext } from "./context.ts";

/** How the messages of one lane reach the destination. */
export interface Sender {
  /** Several events of a key may be in one publish. */
  readonly manyOfKey: boolean;
  /** Publishes at a time. */
  readonly publishesMax: number;
  /** A publish has several steps, and the sender gives each of them its own time. */
  readonly keepsTime: boolean;
  /** As a publisher does. */
  readonly publish: Publisher["publish"];
}

export function plainSender({ destination, limits }: PipelineContext): Sender {
  const { publisher } = destination;
  return {
    manyOfKey: publisher.capabilities.keyOrderInBatch,
    publishesMax: limits.publishesPerLane,
    keepsTime: false,
    publish: (batch, report, signal) => publisher.publish(batch, report, signal),
  };
}
