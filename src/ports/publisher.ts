import type { Message } from "../core/event.ts";
import type { Outcome } from "../core/outcome.ts";
import type { Transactions } from "./transactions.ts";

/** What a publisher can do. The engine asks for capabilities, never for the kind of broker. */
export interface PublisherCapabilities {
  /**
   * True when a failed message keeps the later messages of its key in the same batch from being delivered. A batch may
   * then hold many events of a key; otherwise the dispatcher sends a key's events one after another.
   */
  readonly keyOrderInBatch: boolean;
  /** True when the destination drops a second message with the same event id. */
  readonly deduplicates: boolean;
  /** The prefix of CloudEvents attributes in this destination's headers; by default `ce-`. */
  readonly attributePrefix?: string;
  /**
   * True when one publish makes several requests in sequence. The publisher then times each request with the timer it
   * gets.
   */
  readonly timesRequests?: boolean;
}

/**
 * Call it when a request is sent, and the function that it returns once, when the request ends: true if an answer came.
 */
export type RequestTimer = () => (isAnswered: boolean) => void;

/** Reports the outcome of the message at this index of the batch. */
export type Report = (index: number, outcome: Outcome) => void;

/** A reason why messages would not arrive or would not be kept, found without sending one. */
export interface Obstacle {
  /** An `error` blocks delivery or loses messages; a `warning` may do so later. */
  readonly severity: "error" | "warning";
  /** The same text that a publish which fails for this reason reports. */
  readonly reason: string;
}

/**
 * Delivers messages to one destination. It never sees the source and retries nothing: the engine decides on retries.
 */
export interface Publisher {
  readonly name: string;
  readonly capabilities: PublisherCapabilities;

  /**
   * Present when the publisher delivers exactly once: the engine then uses these instead of `publish`. Absent when it
   * is configured to deliver at least once.
   */
  readonly transactions?: Transactions;

  /**
   * Sends the batch in order and reports each message once, as soon as its outcome is known. Report `delivered` only
   * after the destination acknowledged the message: the engine then marks the event, and nothing sends it again.
   * Expected failures are outcomes. A rejected promise means that the outcome of every message not yet reported is
   * unknown.
   *
   * When the signal aborts, return promptly and destroy the connection: as far as the protocol allows, nothing that is
   * on the wire may arrive later, because the engine sends it again, possibly from another instance.
   *
   * `timer` is for publishers that time their requests; it is absent when the publish is not to be measured.
   */
  publish(batch: readonly Message[], report: Report, signal: AbortSignal, timer?: RequestTimer): Promise<void>;

  /**
   * Checks what would block delivery. It connects, logs in and looks for the configured topic, queue or exchange as a
   * publish does, but writes nothing. Ends when the signal aborts. Absent where nothing can be checked.
   */
  examine?(signal: AbortSignal): Promise<readonly Obstacle[]>;

  /** Closes all connections. Called once, when nothing is in flight; legal without a publish before. */
  close(): Promise<void>;
}
