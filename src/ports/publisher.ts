import type { Message } from "../core/event.ts";
import type { Outcome } from "../core/outcome.ts";
import type { Transactions } from "./transactions.ts";

export interface PublisherCapabilities {
  /**
   * True when, within one batch, a failed message keeps the later messages of its key from being delivered. Then a
   * batch may hold many events of a key; otherwise the dispatcher sends a key's events one after another.
   */
  readonly keyOrderInBatch: boolean;
  /** True when the destination drops a second message with the same event id. */
  readonly deduplicates: boolean;
  /** What stands before the name of a CloudEvents attribute in a header here; `ce-` where nothing else is said. */
  readonly attributePrefix?: string;
}

/** Tells the outcome of the message at this index. */
export type Report = (index: number, outcome: Outcome) => void;

/** Delivers messages to one destination. Broker-agnostic: it never sees the source, retries nothing by itself. */
export interface Publisher {
  readonly name: string;
  readonly capabilities: PublisherCapabilities;

  /**
   * Present when it delivers exactly once: then the engine uses these instead of `publish`. A publisher that was told
   * to deliver at least once has none.
   */
  readonly transactions?: Transactions;

  /**
   * Sends the batch in its order and reports each message once, as soon as its outcome is known. `delivered` is
   * reported only after the destination acknowledged it. Expected failures are outcomes; a rejected promise means
   * that the outcome of every message not reported yet is unknown.
   *
   * When the signal aborts, it returns promptly and gives up what is on the wire in a way that keeps it, as far as
   * the protocol allows, from arriving later (it destroys the connection).
   */
  publish(batch: readonly Message[], report: Report, signal: AbortSignal): Promise<void>;

  /** Lets go of connections. Called once, when nothing is in flight; legal without any publish before. */
  close(): Promise<void>;
}
