import type { Message } from "../../src/core/event.ts";
import type { Publisher } from "../../src/ports/publisher.ts";

/** A destination with its server, to compare our publisher with the bare client. */
export interface PublisherStand extends AsyncDisposable {
  readonly publisher: Publisher;
  /** The topic of all messages. */
  readonly topic: string;
  /**
   * Sends a batch with the bare client in the fastest way that its makers describe, acknowledged by the server, with
   * the same headers, key and id. Several may be under way at a time, as with the publisher.
   */
  sendRaw(batch: readonly Message[]): Promise<void>;
  /** Counted at the consumer's side: all that has arrived until now, from both. */
  arrived(): Promise<number>;
}

export interface PublisherBench {
  readonly name: string;
  open(): Promise<PublisherStand>;
}
