import type { SendMessageBatchCommandOutput } from "@aws-sdk/client-sqs";
import type { Message } from "../../core/event.ts";
import { KeyLines } from "../../core/key-lines.ts";
import { delivered, type Outcome, rejected, retry, skipped } from "../../core/outcome.ts";
import type { Report } from "../../ports/publisher.ts";
import type { SqsSettings } from "./sqs-config.ts";
import { type SqsEntry, sqsEntry } from "./sqs-entry.ts";
import { entryFailure, isAboutMessages, requestFailure } from "./sqs-errors.ts";

/** The limit of SQS. */
const ENTRIES_MAX = 10;
/** The maximum number of concurrent requests per publish. */
const REQUESTS_MAX = 8;

type Numbered = SqsEntry & { readonly index: number };

interface DeliveryContext {
  readonly settings: SqsSettings;
  readonly report: Report;
  /** Sends one batch; rejects with the client's error. */
  readonly send: (entries: readonly Numbered[]) => Promise<SendMessageBatchCommandOutput>;
}

/**
 * One publish: several concurrent requests. An event of a key is sent only after the earlier one was accepted, because
 * a queue can reject one entry and accept the next, which would change their order.
 */
export class SqsDelivery {
  readonly #context: DeliveryContext;
  readonly #batch: readonly Message[];
  readonly #untilMs: number;
  readonly #done = Promise.withResolvers<void>();
  readonly #lines: KeyLines;
  #requests = 0;
  #isGivenUp = false;

  constructor(context: DeliveryContext, batch: readonly Message[]) {
    this.#context = context;
    this.#batch = batch;
    this.#lines = new KeyLines(batch, context.report);
    this.#untilMs = performance.now() + context.settings.sendTimeoutMs;
  }

  /** Resolves when everything is reported. */
  run(): Promise<void> {
    this.#pump();
    return this.#done.promise;
  }

  /** Stops reporting and sending. */
  giveUp(): void {
    this.#isGivenUp = true;
  }

  #pump(): void {
    while (this.#requests < REQUESTS_MAX && this.#lines.ready.length > 0 && !this.#isGivenUp) {
      const entries = performance.now() < this.#untilMs ? this.#take() : this.#skip();
      if (entries.length > 0) void this.#request(entries);
    }
    if (this.#requests === 0 && this.#lines.ready.length === 0) this.#done.resolve();
  }

  /** The next entries that fit into one request. */
  #take(): Numbered[] {
    const { settings } = this.#context;
    const entries: Numbered[] = [];
    let bytes = 0;
    while (entries.length < ENTRIES_MAX && this.#lines.ready.length > 0) {
      const index = this.#lines.ready[0]!;
      const entry = sqsEntry(this.#batch[index]!, settings.isFifo);
      if (entry.bytes > settings.bytesMax) {
        this.#lines.ready.shift();
        const reason = `queue "${settings.queue}": the message has ${entry.bytes} bytes with its attributes, but ${settings.bytesMax} are allowed`;
        this.#settle(index, rejected(reason, { errorType: "MESSAGE_TOO_LARGE" }));
        continue;
      }
      if (bytes + entry.bytes > settings.bytesMax) break;
      this.#lines.ready.shift();
      bytes += entry.bytes;
      entries.push({ ...entry, index });
    }
    return entries;
  }

  /** The time is over: unsent events are skipped and published again later, without a failed attempt. */
  #skip(): [] {
    for (const index of this.#lines.ready.splice(0)) this.#settle(index, skipped);
    return [];
  }

  async #request(entries: readonly Numbered[]): Promise<void> {
    this.#requests += 1;
    await this.#send(entries);
    this.#requests -= 1;
    this.#pump();
  }

  async #send(entries: readonly Numbered[]): Promise<void> {
    const { send, settings } = this.#context;
    let answer: SendMessageBatchCommandOutput;
    try {
      answer = await send(entries);
    } catch (error) {
      if (entries.length > 1 && isAboutMessages(error) && !this.#isGivenUp) {
        const half = Math.ceil(entries.length / 2);
        await this.#send(entries.slice(0, half));
        await this.#send(entries.slice(half));
        return;
      }
      for (const { index } of entries) this.#settle(index, requestFailure(settings, error));
      return;
    }
    const outcomes = new Map<string, Outcome>();
    for (const { Id } of answer.Successful ?? []) outcomes.set(Id!, delivered);
    for (const failed of answer.Failed ?? []) outcomes.set(failed.Id!, entryFailure(settings, failed));
    const silent = retry(`queue "${settings.queue}" returned no result for the event`, { scope: "destination" });
    for (const { index } of entries) this.#settle(index, outcomes.get(String(index)) ?? silent);
  }

  #settle(index: number, outcome: Outcome): void {
    if (!this.#isGivenUp) this.#lines.settle(index, outcome);
  }
}
