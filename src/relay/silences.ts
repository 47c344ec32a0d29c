import { RelayError, reasonOf } from "../core/errors.ts";
import { type Failed, retry } from "../core/outcome.ts";
import type { Destination } from "./destination.ts";

interface Silence {
  /** When the first send without an answer began. */
  readonly sinceMs: number;
  readonly times: number;
}

/** More than these are no longer single bad events. */
const EVENTS_MAX = 1_000;
/** So often an event may go without an answer before it is judged. */
const TIMES_MAX = 2;

/**
 * Transactions that got no answer. Each of them voids its lane and everything that the lane knew, so this is remembered
 * outside of it: or the same events would be sent together for ever. Batches get smaller, half with each silence, until
 * the one event that the destination never answers is alone; that one is then judged by itself.
 */
export class Silences {
  readonly #events = new Map<string, Silence>();
  readonly #batches = new Map<number, number>();

  noteBatch(lane: number): void {
    this.#batches.set(lane, this.ofBatches(lane) + 1);
  }

  ofBatches(lane: number): number {
    return this.#batches.get(lane) ?? 0;
  }

  /** A batch of this lane was delivered: the next may be larger again. */
  endOfBatch(lane: number): void {
    const left = this.ofBatches(lane) - 1;
    if (left > 0) this.#batches.set(lane, left);
    else this.#batches.delete(lane);
  }

  /** It was alone in the transaction. */
  noteEvent(id: string, startedMs: number): void {
    const before = this.#events.get(id);
    this.#events.delete(id);
    this.#events.set(id, { sinceMs: before?.sinceMs ?? startedMs, times: (before?.times ?? 0) + 1 });
    if (this.#events.size > EVENTS_MAX) this.#events.delete(this.#events.keys().next().value!);
  }

  ofEvent(id: string): Silence | undefined {
    return this.#events.size === 0 ? undefined : this.#events.get(id);
  }

  /** Since when it has been silent, once it has been so too often; asking for that gives it one more chance later. */
  judge(id: string): number | null {
    const silence = this.#events.get(id);
    if (silence === undefined || silence.times < TIMES_MAX) return null;
    this.#events.set(id, { ...silence, times: TIMES_MAX - 1 });
    return silence.sinceMs;
  }

  endOfEvent(id: string): void {
    if (this.#events.size > 0) this.#events.delete(id);
  }
}

/** Of an event that was alone in transactions without an answer since then. */
export function verdictOfSilence(destination: Destination, sinceMs: number): Failed {
  const what = `${destination.name} gave no answer to transactions with this event alone.`;
  const reason = reasonOf(new RelayError("PUBLISH_UNKNOWN", what));
  return destination.answeredSince(sinceMs) ? retry(reason) : retry(reason, { scope: "destination" });
}
