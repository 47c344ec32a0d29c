import { type Clock, orAborted, systemClock } from "../../core/clock.ts";
import { RelayError } from "../../core/errors.ts";
import type { Message } from "../../core/event.ts";
import { delivered, type Outcome, retry, skipped } from "../../core/outcome.ts";
import type { Publisher, Report } from "../../ports/publisher.ts";
import type { Transactions } from "../../ports/transactions.ts";
import { TransactionBroker } from "./memory-transaction-broker.ts";
import { memoryTransactions, type TransactionStep } from "./memory-transactions.ts";

/**
 * What a script answers. `hang`: the message is lost and never answered. `unanswered`: the message arrives, only the
 * answer is lost.
 */
export type MemoryAnswer = Outcome | "hang" | "unanswered";

/** Options of `memoryPublisher`. */
export interface MemoryPublisherOptions {
  readonly name?: string;
  readonly keyOrderInBatch?: boolean;
  readonly deduplicates?: boolean;
  /** How long the destination takes per batch, measured by the clock. */
  readonly latencyMs?: number;
  readonly clock?: Clock;
  /** Delivers exactly once, in transactions. Several publishers may share a broker, each acting as a process. */
  readonly transactions?: true | TransactionBroker<Message>;
}

/** A publisher for tests that records what it gets. */
export interface MemoryPublisher extends Publisher {
  /** The messages that arrived, in order of arrival. */
  readonly delivered: readonly Message[];
  deliveredOf(key: string | null): readonly Message[];
  /** Resolves as soon as `count` messages have arrived. */
  arrived(count: number): Promise<void>;
  /** The next `count` messages get this outcome. */
  failNext(count: number, outcome: Outcome): void;
  /** Sets a script that decides the answer of every message, unless `failNext` or `down` does. Null removes it. */
  respond(script: ((message: Message) => MemoryAnswer | Promise<MemoryAnswer>) | null): void;
  /** Fails every publish with scope `destination`, until `up`. */
  down(reason: string): void;
  up(): void;
  /**
   * Sets a script for the requests of transactions: `hang` loses the request, `unanswered` only its answer; both wait
   * until the relay aborts. Null removes it.
   */
  respondToTransactions(script: ((step: TransactionStep) => "answer" | "hang" | "unanswered") | null): void;
  readonly closed: boolean;
}

/** Creates a destination in memory with scriptable faults, for tests. */
export function memoryPublisher(options: MemoryPublisherOptions = {}): MemoryPublisher {
  return new Memory(options);
}

class Memory implements MemoryPublisher {
  readonly name: string;
  readonly capabilities: Publisher["capabilities"];
  readonly transactions?: Transactions;
  readonly delivered: Message[] = [];
  closed = false;
  readonly #clock: Clock;
  readonly #latencyMs: number;
  readonly #ofKey = new Map<string | null, Message[]>();
  readonly #ids = new Set<string>();
  readonly #failing: { left: number; outcome: Outcome }[] = [];
  #waiting: { count: number; resolve: () => void }[] = [];
  #script: ((message: Message) => MemoryAnswer | Promise<MemoryAnswer>) | null = null;
  #transactionScript: ((step: TransactionStep) => "answer" | "hang" | "unanswered") | null = null;
  #downReason: string | null = null;

  constructor(options: MemoryPublisherOptions) {
    this.name = options.name ?? "memory";
    this.capabilities = {
      keyOrderInBatch: options.keyOrderInBatch ?? true,
      deduplicates: options.deduplicates ?? false,
    };
    this.#clock = options.clock ?? systemClock;
    this.#latencyMs = options.latencyMs ?? 0;
    if (options.transactions === undefined) return;
    const nowMs = () => this.#clock.monotonicMs();
    const broker = options.transactions === true ? new TransactionBroker<Message>({ nowMs }) : options.transactions;
    broker.onVisible((messages) => {
      for (const message of messages) this.#arrive(message);
    });
    this.transactions = memoryTransactions(broker, {
      request: (step, signal, effect) => this.#request(step, signal, effect),
      judge: (message, signal) => this.#judge(message, signal),
    });
  }

  async publish(batch: readonly Message[], report: Report, signal: AbortSignal): Promise<void> {
    const travel = this.#travel(signal);
    if (travel !== null) await travel;
    const failedKeys = new Set<string>();
    for (const [index, message] of batch.entries()) {
      if (signal.aborted) throw unknown(this.name);
      // The event's own key is the unit of order, whatever key a route sends it under.
      const { key } = message.event;
      if (key !== null && failedKeys.has(key)) {
        report(index, skipped);
        continue;
      }
      const decided = this.#answer(message);
      const answer = decided instanceof Promise ? await orAborted(decided, signal, () => unknown(this.name)) : decided;
      if (answer === "unanswered" || (answer !== "hang" && answer.kind === "delivered")) this.#arrive(message);
      const outcome = typeof answer === "string" ? await this.#neverAnswers(signal) : answer;
      const keepsBack = outcome.kind !== "delivered" && this.capabilities.keyOrderInBatch;
      if (keepsBack && key !== null) failedKeys.add(key);
      report(index, outcome);
    }
  }

  async close(): Promise<void> {
    this.closed = true;
  }

  deliveredOf(key: string | null): readonly Message[] {
    return this.#ofKey.get(key) ?? [];
  }

  arrived(count: number): Promise<void> {
    if (this.delivered.length >= count) return Promise.resolve();
    return new Promise((resolve) => this.#waiting.push({ count, resolve }));
  }

  failNext(count: number, outcome: Outcome): void {
    if (count > 0) this.#failing.push({ left: count, outcome });
  }

  respond(script: ((message: Message) => MemoryAnswer | Promise<MemoryAnswer>) | null): void {
    this.#script = script;
  }

  down(reason: string): void {
    this.#downReason = reason;
  }

  up(): void {
    this.#downReason = null;
  }

  respondToTransactions(script: ((step: TransactionStep) => "answer" | "hang" | "unanswered") | null): void {
    this.#transactionScript = script;
  }

  async #request<T>(step: TransactionStep, signal: AbortSignal, effect: () => T): Promise<T> {
    await this.#travel(signal);
    if (signal.aborted) throw unknown(this.name);
    if (this.#downReason !== null)
      throw new RelayError("DESTINATION_UNREACHABLE", `${this.name}: ${this.#downReason}.`);
    const answer = this.#transactionScript?.(step) ?? "answer";
    if (answer === "hang") return this.#neverAnswers(signal);
    const result = effect();
    return answer === "unanswered" ? this.#neverAnswers(signal) : result;
  }

  /** The outcome of one message of a transaction. The commit decides whether it arrives. */
  async #judge(message: Message, signal: AbortSignal): Promise<Outcome> {
    const answer = await orAborted(Promise.resolve(this.#answer(message)), signal, () => unknown(this.name));
    return typeof answer === "string" ? this.#neverAnswers(signal) : answer;
  }

  #travel(signal: AbortSignal): Promise<void> | null {
    if (this.closed) throw new Error(`publisher "${this.name}" is closed`);
    return this.#latencyMs > 0 ? this.#clock.sleep(this.#latencyMs, signal) : null;
  }

  #answer(message: Message): MemoryAnswer | Promise<MemoryAnswer> {
    if (this.#downReason !== null) return retry(this.#downReason, { scope: "destination" });
    const failing = this.#failing[0];
    if (failing === undefined) return this.#script === null ? delivered : this.#script(message);
    failing.left -= 1;
    if (failing.left === 0) this.#failing.shift();
    return failing.outcome;
  }

  #arrive(message: Message): void {
    if (this.capabilities.deduplicates && this.#ids.has(message.event.id)) return;
    this.#ids.add(message.event.id);
    this.delivered.push(message);
    const ofKey = this.#ofKey.get(message.key);
    if (ofKey === undefined) this.#ofKey.set(message.key, [message]);
    else ofKey.push(message);
    if (this.#waiting.length === 0) return;
    const done = this.#waiting.filter((wait) => wait.count <= this.delivered.length);
    this.#waiting = this.#waiting.filter((wait) => wait.count > this.delivered.length);
    for (const wait of done) wait.resolve();
  }

  #neverAnswers(signal: AbortSignal): Promise<never> {
    return orAborted(new Promise<never>(() => {}), signal, () => unknown(this.name));
  }
}

function unknown(name: string): RelayError {
  return new RelayError("PUBLISH_UNKNOWN", `the publish to "${name}" was given up`);
}
