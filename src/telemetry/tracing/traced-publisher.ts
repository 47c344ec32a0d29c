import type { Message } from "../../core/event.ts";
import { type Outcome, skipped } from "../../core/outcome.ts";
import type { Publisher, Report } from "../../ports/publisher.ts";
import type { CommittedBatch, LaneTransactions, Transactions } from "../../ports/transactions.ts";
import type { SendSpans, TracedPublish } from "./send-spans.ts";

/** The same publisher, with spans for what it sends. */
export function tracedPublisher(inner: Publisher, spans: SendSpans): Publisher {
  const { transactions } = inner;
  return {
    name: inner.name,
    capabilities: inner.capabilities,
    ...(transactions === undefined ? {} : { transactions: tracedTransactions(transactions, spans) }),
    publish: (...args) => publish(inner, spans, ...args),
    close: () => inner.close(),
  };
}

async function publish(
  inner: Publisher,
  spans: SendSpans,
  ...[batch, report, signal, timer]: Parameters<Publisher["publish"]>
): Promise<void> {
  const traced = spans.begin(batch);
  if (traced === null) return await inner.publish(batch, report, signal, timer);
  const tracedReport: Report = (index, outcome) => {
    traced.outcome(index, outcome);
    report(index, outcome);
  };
  try {
    await inner.publish(traced.messages, tracedReport, signal, timer);
    traced.end();
  } catch (error) {
    traced.end(error);
    throw error;
  }
}

function tracedTransactions(inner: Transactions, spans: SendSpans): Transactions {
  return {
    ringSize: inner.ringSize,
    prepare: (slots) => inner.prepare(slots),
    ...(inner.examine === undefined ? {} : { examine: inner.examine.bind(inner) }),
    fence: async (lane, signal) => new TracedLane(await inner.fence(lane, signal), spans),
  };
}

/** An event counts as delivered only when its transaction is committed. */
class TracedLane implements LaneTransactions {
  readonly #inner: LaneTransactions;
  readonly #spans: SendSpans;
  #open: { readonly traced: TracedPublish; readonly outcomes: readonly Outcome[] } | null = null;

  constructor(inner: LaneTransactions, spans: SendSpans) {
    this.#inner = inner;
    this.#spans = spans;
  }

  get isSpent(): boolean {
    return this.#inner.isSpent;
  }

  lastCommitted(after: bigint, signal: AbortSignal) {
    return this.#inner.lastCommitted(after, signal);
  }

  async send(messages: readonly Message[], note: CommittedBatch, signal: AbortSignal): Promise<readonly Outcome[]> {
    const traced = this.#spans.begin(messages);
    if (traced === null) return await this.#inner.send(messages, note, signal);
    this.#open = { traced, outcomes: [] };
    const outcomes = await this.#ending(this.#inner.send(traced.messages, note, signal));
    this.#open = { traced, outcomes };
    return outcomes;
  }

  async commit(signal: AbortSignal): Promise<void> {
    await this.#ending(this.#inner.commit(signal));
    this.#report((outcome) => outcome);
  }

  async abort(signal: AbortSignal): Promise<void> {
    await this.#ending(this.#inner.abort(signal));
    this.#report((outcome) => (outcome.kind === "delivered" ? skipped : outcome));
  }

  async close(): Promise<void> {
    this.#end(new Error("the lane was closed before the transaction ended"));
    await this.#inner.close();
  }

  /** After a rejection the transaction's result is unknown, so its spans end with the error. */
  async #ending<T>(work: Promise<T>): Promise<T> {
    try {
      return await work;
    } catch (error) {
      this.#end(error);
      throw error;
    }
  }

  #report(judge: (outcome: Outcome) => Outcome): void {
    if (this.#open === null) return;
    const { traced, outcomes } = this.#open;
    for (const [index, outcome] of outcomes.entries()) traced.outcome(index, judge(outcome));
    this.#end(null);
  }

  #end(error: unknown): void {
    this.#open?.traced.end(error);
    this.#open = null;
  }
}
