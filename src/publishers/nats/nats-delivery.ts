import type { MsgHdrs } from "@nats-io/transport-node";
import { dedupeId } from "../../core/dedupe-id.ts";
import type { Message } from "../../core/event.ts";
import { KeyLines } from "../../core/key-lines.ts";
import { type Outcome, rejected } from "../../core/outcome.ts";
import type { Report, RequestTimer } from "../../ports/publisher.ts";
import type { Nats } from "./nats-client.ts";
import { type NatsSettings, subjectFault } from "./nats-config.ts";
import { outcomeOf } from "./nats-errors.ts";
import type { NatsLink } from "./nats-link.ts";

/** The maximum number of unacknowledged payload bytes, to bound the memory. */
const UNANSWERED_BYTES_MAX = 8_000_000;

interface DeliveryContext {
  readonly nats: Nats;
  readonly settings: NatsSettings;
  readonly link: NatsLink;
  readonly report: Report;
  readonly timer: RequestTimer | undefined;
}

/**
 * One publish. Messages are pipelined, but a message waits for the acknowledgement of the earlier one of its key: a
 * stream can reject a message and accept the next, which would change their order.
 */
export class NatsDelivery {
  readonly #context: DeliveryContext;
  readonly #batch: readonly Message[];
  readonly #untilMs: number;
  readonly #done = Promise.withResolvers<void>();
  /** The ready messages up to `#next` have been sent. */
  readonly #lines: KeyLines;
  #next = 0;
  #unanswered = 0;
  #unansweredBytes = 0;
  /** Only one message at a time is timed: timing every message would cost more than sending it. */
  #answered: ((isAnswered: boolean) => void) | undefined;

  constructor(context: DeliveryContext, batch: readonly Message[]) {
    this.#context = context;
    this.#batch = batch;
    this.#lines = new KeyLines(batch, context.report);
    this.#untilMs = performance.now() + context.settings.sendTimeoutMs;
  }

  /** Resolves when everything is reported; never if the connection is lost before. */
  run(): Promise<void> {
    this.#pump();
    return this.#done.promise;
  }

  /** Ends the timing of a publish that is no longer awaited. */
  giveUp(): void {
    this.#endTiming(false);
  }

  #pump(): void {
    const { ready } = this.#lines;
    while (this.#next < ready.length && this.#unansweredBytes < UNANSWERED_BYTES_MAX) this.#send(ready[this.#next++]!);
    if (this.#unanswered === 0 && this.#next === ready.length) this.#done.resolve();
  }

  #send(index: number): void {
    const { link, nats, settings, timer } = this.#context;
    const message = this.#batch[index]!;
    const { payload, topic } = message;
    const fault = messageFault(message);
    if (fault !== null) {
      this.#settle(index, rejected(fault, { errorType: "ILLEGAL_MESSAGE" }));
      return;
    }
    const isTimed = timer !== undefined && this.#answered === undefined;
    if (isTimed) this.#answered = timer();
    const isSent = link.send(topic, payload, natsHeaders(nats, message, settings), (answer) => {
      if (isTimed) this.#endTiming(true);
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
    if (isTimed) this.#endTiming(false);
    const reason = `subject "${topic}": larger than the server's max_payload of ${link.bytesMax} bytes`;
    this.#settle(index, rejected(reason, { errorType: "MESSAGE_TOO_LARGE" }));
  }

  #endTiming(isAnswered: boolean): void {
    this.#answered?.(isAnswered);
    this.#answered = undefined;
  }

  /**
   * A key with many messages could outlast the publish, so after `#untilMs` the rest is skipped and published again
   * later.
   */
  #settle(index: number, outcome: Outcome): void {
    this.#lines.settle(index, outcome, performance.now() < this.#untilMs);
  }
}

/** NATS has no message key, so a header carries it. */
const KEY_HEADER = "partition-key";

/** Headers with this prefix are commands to the server: one of them purges the stream. */
const SERVER_HEADER = /^nats-/i;
const HEADER_NAME = /^[!-9;-~]+$/;
const LINE_BREAK = /[\r\n]/;

/** Null when NATS can carry the message, else what is wrong with it. */
function messageFault({ event, headers, key, topic }: Message): string | null {
  const fault = subjectFault(topic) ?? valueFault("the event's id", event.id);
  if (fault !== null) return fault;
  if (key !== null) {
    const keyFault = valueFault("the key", key);
    if (keyFault !== null) return keyFault;
  }
  for (const name in headers) {
    if (!HEADER_NAME.test(name))
      return `the header name ${JSON.stringify(name)} contains characters that NATS cannot carry`;
    if (SERVER_HEADER.test(name)) return `the header ${name} would be a command to the NATS server`;
    const headerFault = valueFault(`the header ${name}`, headers[name]!);
    if (headerFault !== null) return headerFault;
  }
  return null;
}

function valueFault(what: string, value: string): string | null {
  if (LINE_BREAK.test(value)) return `${what} contains a line break, which NATS cannot carry`;
  return value.isWellFormed() ? null : `${what} contains half a character (a lone surrogate)`;
}

/** The headers of a message that `messageFault` has accepted. */
function natsHeaders(nats: Nats, message: Message, { stream }: NatsSettings): MsgHdrs {
  const { headers, key } = message;
  // Without a prototype, because a header may be named `__proto__`.
  const record: Record<string, string[]> = Object.create(null);
  for (const name in headers) record[name] = [headers[name]!];
  record["Nats-Msg-Id"] = [dedupeId(message)];
  if (stream !== null) record["Nats-Expected-Stream"] = [stream];
  if (key !== null) record[KEY_HEADER] = [key];
  return nats.MsgHdrsImpl.fromRecord(record);
}
