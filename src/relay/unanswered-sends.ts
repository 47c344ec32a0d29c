import { RelayError, reasonOf } from "../core/errors.ts";
import { type Failed, retry } from "../core/outcome.ts";
import type { Destination } from "./destination.ts";

interface UnansweredSend {
  /** When the first send without an answer began. */
  readonly sinceMs: number;
  /** Sends in a row without an answer. */
  readonly times: number;
}

/** Beyond this many events, single bad events are no longer the cause. */
const EVENTS_MAX = 1_000;
/** After this many unanswered sends in a row, an event gets an outcome instead of another send. */
const TIMES_MAX = 2;

/**
 * Transactions that got no answer. Each of them voids its lane and everything that the lane knew, so they are counted
 * outside the lane: otherwise the same events would be sent together for ever. Each unanswered batch halves the next
 * one, until the one event that the destination never answers is sent alone and gets an outcome of its own.
 */
export class UnansweredSends {
  readonly #events = new Map<string, UnansweredSend>();
  readonly #batches = new Map<number, number>();

  /** A batch of several events of this lane got no answer. */
  noteBatch(lane: number): void {
    this.#batches.set(lane, this.ofBatches(lane) + 1);
  }

  /** How often the next batch of this lane is to be halved. */
  ofBatches(lane: number): number {
    return this.#batches.get(lane) ?? 0;
  }

  /** The destination answered a batch of this lane: the next batch may be larger again. */
  endOfBatch(lane: number): void {
    const left = this.ofBatches(lane) - 1;
    if (left > 0) this.#batches.set(lane, left);
    else this.#batches.delete(lane);
  }

  /** A transaction with this event alone got no answer. */
  noteEvent(id: string, startedMs: number): void {
    const before = this.#events.get(id);
    this.#events.delete(id);
    this.#events.set(id, { sinceMs: before?.sinceMs ?? startedMs, times: (before?.times ?? 0) + 1 });
    if (this.#events.size > EVENTS_MAX) this.#events.delete(this.#events.keys().next().value!);
  }

  /** True when every event got an answer. */
  get isEmpty(): boolean {
    return this.#events.size === 0;
  }

  ofEvent(id: string): UnansweredSend | undefined {
    return this.#events.size === 0 ? undefined : this.#events.get(id);
  }

  /**
   * Since when the destination has not answered this event, once that happened too often; null: send it. The caller
   * fails the event without a send, so the count falls by one: after its backoff the event is sent once more.
   */
  takeExhausted(id: string): number | null {
    const unanswered = this.ofEvent(id);
    if (unanswered === undefined || unanswered.times < TIMES_MAX) return null;
    this.#events.set(id, { ...unanswered, times: TIMES_MAX - 1 });
    return unanswered.sinceMs;
  }

  /** The events were delivered. */
  endOfEvents(ids: readonly string[]): void {
    if (this.#events.size === 0) return;
    for (const id of ids) this.#events.delete(id);
  }
}

/**
 * The outcome of an event that was alone in unanswered transactions since then. A destination that answered others in
 * the meantime is alive, so the failure is the event's; otherwise it is an outage and costs no attempt.
 */
export function outcomeOfUnanswered(destination: Destination, sinceMs: number): Failed {
  const what = `${destination.name} gave no answer to transactions with this event alone.`;
  const reason = reasonOf(new RelayError("PUBLISH_UNKNOWN", what));
  return destination.answeredSince(sinceMs) ? retry(reason) : retry(reason, { scope: "destination" });
}
