import type { ConfirmChannel, Message as Returned } from "amqplib";
import { reasonOf } from "../../core/errors.ts";
import type { Message } from "../../core/event.ts";
import { delivered, rejected } from "../../core/outcome.ts";
import type { Report } from "../../ports/publisher.ts";
import { destroyConnection, type Wire } from "./rabbitmq-client.ts";
import type { RabbitSettings } from "./rabbitmq-config.ts";
import { BlockedError, outcomeOf, refused, unroutable } from "./rabbitmq-errors.ts";
import { faultOf, propertiesOf } from "./rabbitmq-message.ts";

/** A message that was sent and is not confirmed yet. */
interface Unconfirmed {
  readonly index: number;
  readonly message: Message;
  /** The server's reason when it returned the message; the confirmation follows. */
  returned: string | null;
}

/** The timeout of a graceful close. */
const CLOSE_MS = 1_000;

/** A connection with one channel, used by one publish at a time, so that aborting a publish does not affect others. */
export class RabbitLink {
  readonly #wire: Wire;
  readonly #settings: RabbitSettings;
  readonly #unconfirmed = new Map<number, Unconfirmed>();
  #report: Report = () => {};
  /** The delivery tag of the last message sent, and the lowest tag that may be unconfirmed. */
  #lastTag = 0;
  #lowestTag = 1;
  #hasRoom = true;
  #end: unknown = null;
  #isBlocked = false;
  #wake: () => void = () => {};
  readonly #onUnblocked: (link: RabbitLink) => void;

  constructor(wire: Wire, settings: RabbitSettings, onUnblocked: (link: RabbitLink) => void) {
    this.#wire = wire;
    this.#settings = settings;
    this.#onUnblocked = onUnblocked;
    this.#listen(wire.channel);
  }

  /** It must not be used again. */
  get isSpent(): boolean {
    return this.#end !== null;
  }

  /** Why the server blocks this connection; null if it does not. */
  get blockedBy(): unknown {
    return this.#isBlocked ? this.#end : null;
  }

  /** Sends the batch in order and reports each message once; resolves when all are reported. */
  async send(batch: readonly Message[], report: Report): Promise<void> {
    this.#report = report;
    this.#lowestTag = this.#lastTag + 1;
    let index = 0;
    for (; index < batch.length && !this.isSpent; index++) {
      const hasRoom = this.#sendOne(index, batch[index]!);
      if (!hasRoom) await this.#until(() => this.#hasRoom);
    }
    await this.#until(() => this.#unconfirmed.size === 0);
    for (const { index, message } of this.#unconfirmed.values()) this.#fail(index, message);
    this.#unconfirmed.clear();
    for (; index < batch.length; index++) this.#fail(index, batch[index]!);
  }

  /** Closes the connection at once; nothing more is sent. May be called at any time, also twice. */
  destroy(): void {
    this.#end ??= new Error("the connection was given up");
    this.#isBlocked = false;
    destroyConnection(this.#wire.model);
    this.#wake();
  }

  /** Closes the connection gracefully, within a timeout. */
  async close(): Promise<void> {
    const { model } = this.#wire;
    if (!this.isSpent) {
      const late = setTimeout(() => this.destroy(), CLOSE_MS);
      await model.close().catch(() => {});
      clearTimeout(late);
    }
    this.destroy();
  }

  /** False when the client asks for a pause. */
  #sendOne(index: number, message: Message): boolean {
    const { channel, frameBytesMax } = this.#wire;
    const fault = faultOf(message, frameBytesMax);
    if (fault !== null) {
      this.#report(index, rejected(fault, { errorType: "ILLEGAL_MESSAGE" }));
      return true;
    }
    try {
      this.#hasRoom = channel.publish(this.#settings.exchange, message.topic, message.payload, propertiesOf(message));
    } catch (error) {
      // Thrown before anything is written, because the client cannot encode the message.
      if (this.isSpent) this.#fail(index, message);
      else this.#report(index, rejected(reasonOf(error), { errorType: "ILLEGAL_MESSAGE", error }));
      return true;
    }
    this.#lastTag += 1;
    this.#unconfirmed.set(this.#lastTag, { index, message, returned: null });
    return this.#hasRoom;
  }

  #listen(channel: ConfirmChannel): void {
    const { model } = this.#wire;
    let said: unknown = null;
    for (const emitter of [model, channel]) emitter.on("error", (error) => (said ??= error));
    model.on("close", (error) => (said ??= error ?? null));
    // The connection's error is emitted only after the channel's "close".
    channel.on("close", () => queueMicrotask(() => this.#ended(said ?? new Error("the connection was closed"))));
    channel.on("drain", () => {
      this.#hasRoom = true;
      this.#wake();
    });
    channel.on("return", (message) => this.#returned(message));
    channel.on("ack", ({ deliveryTag, multiple }) => this.#confirmed(deliveryTag, multiple, true));
    channel.on("nack", ({ deliveryTag, multiple }) => this.#confirmed(deliveryTag, multiple, false));
    model.on("blocked", (reason) => {
      this.#isBlocked = true;
      this.#ended(new BlockedError(reason));
    });
    model.on("unblocked", () => {
      this.#isBlocked = false;
      this.#onUnblocked(this);
    });
  }

  #confirmed(tag: number, multiple: boolean, isAck: boolean): void {
    for (let it = multiple ? this.#lowestTag : tag; it <= tag; it++) this.#settle(it, isAck);
    if (multiple) this.#lowestTag = tag + 1;
    if (this.#unconfirmed.size === 0) this.#wake();
  }

  #settle(tag: number, isAck: boolean): void {
    const found = this.#unconfirmed.get(tag);
    if (found === undefined || this.isSpent) return;
    this.#unconfirmed.delete(tag);
    const { index, message, returned } = found;
    if (returned !== null) this.#report(index, unroutable(this.#settings, message.topic, returned));
    else this.#report(index, isAck ? delivered : refused(this.#settings, message.topic));
  }

  /** The server also confirms a returned message, right afterwards. */
  #returned({ fields, properties }: Returned): void {
    const { replyCode, replyText } = fields as unknown as { replyCode: number; replyText: string };
    for (const unconfirmed of this.#unconfirmed.values()) {
      if (unconfirmed.message.event.id !== properties.messageId || unconfirmed.returned !== null) continue;
      unconfirmed.returned = `${replyCode} ${replyText}`;
      return;
    }
  }

  #fail(index: number, message: Message): void {
    this.#report(index, outcomeOf(this.#settings, this.#end, message));
  }

  #ended(cause: unknown): void {
    this.#end ??= cause;
    this.#wake();
  }

  /** Resolves when the condition holds or the link has ended. */
  async #until(condition: () => boolean): Promise<void> {
    while (!condition() && !this.isSpent) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }
}
