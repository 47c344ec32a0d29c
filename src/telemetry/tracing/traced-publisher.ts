import type { Message } from "../../core/event.ts";
import { type Outcome, skipped } from "../../core/outcome.ts";
import type { Publisher, Report } from "../../ports/publisher.ts";
import type { CommittedBatch, LaneTransactions, Transactions } from "../../ports/transactions.ts";
import type { SendSpans, TracedPublish } from "./send-spans.ts";

/** The same publisher, with spans of what it sends. */
export function tracedPublisher(inner: Publisher, spans: SendSpans): Publisher {
  const { transactions } = inner;
  return {
    name: inner.name,
    capabilities: inner.capabilities,
    ...(transactions === undefined ? {} : { transactions: tracedTransactions(transactions, spans) }),
    publish: (batch, report, signal) => publish(inner, spans, batch, report, signal),
    close: () => inner.close(),
  };
}

async function publish(
  inner: Publisher,
  spans: SendSpans,
  batch: readonly Message[],
  report: Report,
  signal: AbortSignal,
): Promise<void> {
  const traced = spans.begin(batch);
  if (traced === null) return await inner.publish(batch, report, signal);
  const tell: Report = (index, outcome) => {
    traced.outcome(index, outcome);
    report(index, outcome);
  };
  try {
    await inner.publish(traced.messages, tell, signal);
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
    fence: async (lane, signal) => new TracedLane(await inner.fence(lane, signal), spans),
  };
}

/** What was sent is delivered when its transaction is committed, and not before. */
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
    this.#tell((outcome) => outcome);
  }

  async abort(signal: AbortSignal): Promise<void> {
    await this.#ending(this.#inner.abort(signal));
    this.#tell((outcome) => (outcome.kind === "delivered" ? skipped : outcome));
  }

  async close(): Promise<void> {
    this.#end(new Error("the lane was given up before the transaction's end"));
    await this.#inner.close();
  }

  /** Whatever is rejected leaves nobody with the knowledge of what became of the transaction. */
  async #ending<T>(work: Promise<T>): Promise<T> {
    try {
      return await work;
    } catch (error) {
      this.#end(error);
      throw error;
    }
  }

  #tell(judge: (outcome: Outcome) => Outcome): void {
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
