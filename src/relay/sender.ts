import type { Message } from "../core/event.ts";
import type { Publisher, Report, RequestTimer } from "../ports/publisher.ts";
import type { PipelineContext } from "./context.ts";

/** How a sender reports the outcomes of one publish. */
export interface Answers {
  /** One by one. */
  readonly report: Report;
  /** All messages at once: they are delivered, and are this batch of the destination's ledger. */
  committed(batch: bigint): void;
}

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
  publish(
    messages: readonly Message[],
    answers: Answers,
    signal: AbortSignal,
    timer?: RequestTimer,
  ): ReturnType<Publisher["publish"]>;
}

/** Sends by `Publisher.publish`: at least once, without transactions. */
export function plainSender({ destination, limits }: PipelineContext): Sender {
  const { publisher } = destination;
  return {
    manyOfKey: publisher.capabilities.keyOrderInBatch,
    publishesMax: limits.publishesPerLane,
    keepsTime: false,
    timesRequests: publisher.capabilities.timesRequests === true,
    publish: (messages, { report }, signal, timer) => publisher.publish(messages, report, signal, timer),
  };
}
