import type { Message } from "../../core/event.ts";
import { KeyLines } from "../../core/key-lines.ts";
import { type Outcome, rejected } from "../../core/outcome.ts";
import type { Report } from "../../ports/publisher.ts";
import type { Nats } from "./nats-client.ts";
import type { NatsSettings } from "./nats-config.ts";
import { outcomeOf } from "./nats-errors.ts";
import type { NatsLink } from "./nats-link.ts";
import { messageFault, natsHeaders } from "./nats-message.ts";

/** Bytes of payload without an answer; beyond them the next message waits, so that memory stays bounded. */
const UNANSWERED_BYTES_MAX = 8_000_000;

interface DeliveryContext {
  readonly nats: Nats;
  readonly settings: NatsSettings;
  readonly link: NatsLink;
  readonly report: Report;
}

/**
 * One publish. Messages go out one behind the other without waiting for answers, but those of one key each wait for
 * the answer to the one before: a stream can refuse a message and take the next, which would change their order.
 */
export class NatsDelivery {
  readonly #context: DeliveryContext;
  readonly #batch: readonly Message[];
  readonly #untilMs: number;
  readonly #done = Promise.withResolvers<void>();
  /** Up to `#next` what is ready has been sent. */
  readonly #lines: KeyLines;
  #next = 0;
  #unanswered = 0;
  #unansweredBytes = 0;

  constructor(context: DeliveryContext, batch: readonly Message[]) {
    this.#context = context;
    this.#batch = batch;
    this.#lines = new KeyLines(batch, context.report);
    this.#untilMs = performance.now() + context.settings.sendTimeoutMs;
  }

  /** Resolves when everything is reported; never when the connection is lost before. */
  run(): Promise<void> {
    this.#pump();
    return this.#done.promise;
  }

  #pump(): void {
    const { ready } = this.#lines;
    while (this.#next < ready.length && this.#unansweredBytes < UNANSWERED_BYTES_MAX) this.#send(ready[this.#next++]!);
    if (this.#unanswered === 0 && this.#next === ready.length) this.#done.resolve();
  }

  #send(index: number): void {
    const { link, nats, settings } = this.#context;
    const message = this.#batch[index]!;
    const { payload, topic } = message;
    const fault = messageFault(message);
    if (fault !== null) {
      this.#settle(index, rejected(fault, { errorType: "ILLEGAL_MESSAGE" }));
      return;
    }
    const isSent = link.send(topic, payload, natsHeaders(nats, message, settings), (answer) => {
      this.#unanswered -= 1;
      this.#unansweredBytes -= payload.length;
      this.#settle(index, outcomeOf(topic, answer, settings));
      this.#pump();
    });
    if (isSent) {
      this.#unanswered += 1;
      this.#unansweredBytes += payload.length;
      return;
    }
    const reason = `subject "${topic}": larger than the ${link.bytesMax} bytes that the server takes (max_payload)`;
    this.#settle(index, rejected(reason, { errorType: "MESSAGE_TOO_LARGE" }));
  }

  /** A key with many messages over a slow line would outlast the publish; what is left of it then comes again. */
  #settle(index: number, outcome: Outcome): void {
    this.#lines.settle(index, outcome, performance.now() < this.#untilMs);
  }
}
