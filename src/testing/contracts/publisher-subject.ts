import type { Headers, Message } from "../../core/event.ts";
import type { Publisher, PublisherCapabilities } from "../../ports/publisher.ts";

/** What a destination can be made to do; chooses the cases that bind its publisher. */
export interface PublisherTraits extends PublisherCapabilities {
  /** It can refuse a single message. */
  readonly refuses: boolean;
  /** It can be made to take messages without answering. */
  readonly stalls: boolean;
  /** It can be stopped and started again with what it had. */
  readonly stops: boolean;
}

/** A message as a consumer of the destination sees it. */
export interface Received {
  readonly id: string;
  readonly topic: string;
  readonly key: string | null;
  readonly headers: Headers;
  readonly payload: Buffer;
}

/** A publisher at an empty destination. */
export interface PublisherSubject {
  readonly publisher: Publisher;
  /** A topic that exists or may be created, with a name of its own per subject. */
  readonly topic: string;
  /** Everything that has arrived, in the order in which a consumer sees it. */
  received(): Promise<readonly Received[]>;
  /** With `refuses`: changes the message, or prepares the destination, so that this one alone is refused. */
  refuse?(message: Message): Promise<Message>;
  /** With `stalls`. */
  stall?(): Promise<void>;
  resume?(): Promise<void>;
  /** With `stops`: each returns when it is done. */
  stop?(): Promise<void>;
  start?(): Promise<void>;
  /** Of the destination. The publisher is closed by the contract. */
  close(): Promise<void>;
}

export interface PublisherHarness {
  readonly capabilities: PublisherTraits;
  open(): Promise<PublisherSubject>;
}
