import type { EventHeaders, Message } from "../../core/event.ts";
import type { Publisher, PublisherCapabilities } from "../../ports/publisher.ts";

/** What a destination can do in tests; selects the cases that apply to its publisher. */
export interface PublisherTraits extends PublisherCapabilities {
  /** It can refuse a single message. */
  readonly refuses: boolean;
  /** It can accept messages without answering. */
  readonly stalls: boolean;
  /** It can be stopped and started again with its messages. */
  readonly stops: boolean;
}

/** A message as a consumer of the destination sees it. */
export interface Received {
  readonly id: string;
  readonly topic: string;
  readonly key: string | null;
  readonly headers: EventHeaders;
  readonly payload: Buffer;
}

/** A publisher at an empty destination. */
export interface PublisherSubject {
  readonly publisher: Publisher;
  /** A topic that exists or can be created, with a unique name per subject. */
  readonly topic: string;
  /** All messages that have arrived, in the order in which a consumer sees them. */
  received(): Promise<readonly Received[]>;
  /** With `refuses`: changes the message or prepares the destination so that only this message is refused. */
  refuse?(message: Message): Promise<Message>;
  /** With `stalls`. */
  stall?(): Promise<void>;
  resume?(): Promise<void>;
  /** With `stops`: each returns when it is done. */
  stop?(): Promise<void>;
  start?(): Promise<void>;
  /** Closes the destination. The contract closes the publisher. */
  close(): Promise<void>;
}

export interface PublisherHarness {
  readonly capabilities: PublisherTraits;
  open(): Promise<PublisherSubject>;
}
