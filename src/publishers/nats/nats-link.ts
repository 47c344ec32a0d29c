import type { Msg, MsgHdrs, NatsConnection } from "@nats-io/transport-node";
import { orAborted } from "../../core/clock.ts";
import { unreachableError } from "../../core/connection-cause.ts";
import type { RelayError } from "../../core/errors.ts";
import { Semaphore } from "../../core/semaphore.ts";
import type { Nats } from "./nats-client.ts";
import type { NatsSettings } from "./nats-config.ts";
import { connectionReason, type NatsAnswer } from "./nats-errors.ts";

type Settle = (answer: NatsAnswer) => void;

const NO_RESPONDER: NatsAnswer = { kind: "no responders" };
const DENIED: NatsAnswer = { kind: "denied" };
const NO_RESPONDERS = 503;

/**
 * One connection, used by one publish at a time. All answers arrive at one inbox, and the last token of the subject
 * identifies the message: this is several times faster than one request per message.
 */
export class NatsLink {
  readonly #nats: Nats;
  readonly #connection: NatsConnection;
  readonly #inbox: string;
  readonly #waiting = new Map<string, { readonly subject: string; readonly settle: Settle }>();
  /** Resolves when the connection is lost. */
  readonly lost: Promise<RelayError>;
  #isSpent = false;
  #refusal: Error | null = null;
  #sent = 0;

  constructor(nats: Nats, connection: NatsConnection, settings: NatsSettings) {
    this.#nats = nats;
    this.#connection = connection;
    this.#inbox = `${nats.createInbox()}.`;
    connection.subscribe(`${this.#inbox}*`, { callback: (error, message) => this.#answered(error, message) });
    this.lost = connection.closed().then((error) => {
      this.#isSpent = true;
      this.#waiting.clear();
      return unreachableError(connectionReason(settings, this.#refusal ?? error), this.#refusal ?? error);
    });
    void this.#watch();
  }

  /** It must not be used again. */
  get isSpent(): boolean {
    return this.#isSpent;
  }

  /** The limit for headers and payload together; a larger message would end the connection. */
  get bytesMax(): number {
    return this.#connection.info?.max_payload ?? Number.POSITIVE_INFINITY;
  }

  /**
   * Sends one message. `settle` is called with the answer, and never if the connection is lost before. False: the
   * message is too large, and nothing was sent.
   */
  send(subject: string, payload: Buffer, headers: MsgHdrs, settle: Settle): boolean {
    const number = String(this.#sent++);
    try {
      this.#connection.publish(subject, payload, { reply: this.#inbox + number, headers });
    } catch (error) {
      if (error instanceof this.#nats.InvalidArgumentError) return false;
      // The connection was closed: `lost` reports it.
      if (!(error instanceof this.#nats.ClosedConnectionError)) throw error;
    }
    this.#waiting.set(number, { subject, settle });
    return true;
  }

  /** Closes the connection at once: unsent data is never sent. */
  async destroy(): Promise<void> {
    this.#isSpent = true;
    this.#waiting.clear();
    await this.#connection.close();
  }

  #answered(error: Error | null, message: Msg): void {
    // The user must not subscribe to the inbox, so no answer can arrive: close the connection.
    if (error !== null) {
      this.#refusal = error;
      void this.destroy();
      return;
    }
    const number = message.subject.slice(this.#inbox.length);
    const waiting = this.#waiting.get(number);
    if (waiting === undefined) return;
    this.#waiting.delete(number);
    const hasNoResponders = message.data.length === 0 && message.headers?.code === NO_RESPONDERS;
    waiting.settle(hasNoResponders ? NO_RESPONDER : { kind: "text", text: message.string() });
  }

  /** A denied publish gets no answer in the inbox: the server reports it as a status error. */
  async #watch(): Promise<void> {
    for await (const status of this.#connection.status()) {
      if (status.type !== "error") continue;
      const { error } = status as { error: Error & { readonly operation?: string; readonly subject?: string } };
      if (error.operation !== "publish") continue;
      for (const [number, { subject, settle }] of this.#waiting) {
        if (subject !== error.subject) continue;
        this.#waiting.delete(number);
        settle(DENIED);
      }
    }
  }
}

/** The maximum number of concurrent publishes. Each has its own connection, so aborting one does not affect others. */
const LINKS_MAX = 16;

/** The connections to one cluster. */
export class NatsLinkPool {
  readonly #open: (signal: AbortSignal) => Promise<NatsLink>;
  readonly #idle: NatsLink[] = [];
  readonly #permits = new Semaphore(LINKS_MAX);
  #isClosed = false;

  constructor(open: (signal: AbortSignal) => Promise<NatsLink>) {
    this.#open = open;
  }

  /** Rejects when no connection can be opened, or the signal aborts first. */
  async take(signal: AbortSignal): Promise<NatsLink> {
    if (!(await this.#permits.acquire(signal))) throw signal.reason;
    for (let link = this.#idle.pop(); link !== undefined; link = this.#idle.pop()) {
      if (!link.isSpent) return link;
    }
    try {
      return await this.#opened(signal);
    } catch (error) {
      this.#permits.release();
      throw error;
    }
  }

  giveBack(link: NatsLink): void {
    if (link.isSpent || this.#isClosed) void link.destroy();
    else this.#idle.push(link);
    this.#permits.release();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all(this.#idle.splice(0).map((link) => link.destroy()));
  }

  /** A connection that opens after the abort has carried nothing and is closed. */
  async #opened(signal: AbortSignal): Promise<NatsLink> {
    const opening = this.#open(signal);
    try {
      return await orAborted(opening, signal, () => signal.reason);
    } catch (error) {
      opening.then((link) => link.destroy()).catch(() => {});
      throw error;
    }
  }
}
