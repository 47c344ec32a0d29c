import type { InFlightSet } from "../core/in-flight.ts";
import type { ByteBudget } from "./byte-budget.ts";
import type { Entry } from "./lane-queue.ts";

/**
 * The events that a lane has claimed, from the claim until their outcome is durable. They are kept in the pipeline's
 * in-flight set alone: one entry per event.
 */
export class LaneClaims {
  readonly #sent = new Set<string>();
  readonly #budget: ByteBudget;
  readonly #inFlight: InFlightSet<Entry>;
  readonly #onFinish: (entry: Entry) => void;
  #size = 0;
  #bytes = 0;
  #headBytes = 0;

  constructor(budget: ByteBudget, inFlight: InFlightSet<Entry>, onFinish: (entry: Entry) => void) {
    this.#budget = budget;
    this.#inFlight = inFlight;
    this.#onFinish = onFinish;
  }

  get size(): number {
    return this.#size;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** The bytes of held events that are retried. */
  get headBytes(): number {
    return this.#headBytes;
  }

  get(id: string): Entry | undefined {
    const entry = this.#inFlight.get(id);
    return entry?.owner === this ? entry : undefined;
  }

  /** When the event was written; undefined when the lane has no claim on it. */
  readonly createdAtOf = (id: string): string | null | undefined => this.get(id)?.event.createdAt;

  ids(): string[] {
    const ids: string[] = [];
    for (const { event, owner } of this.#inFlight.claims()) if (owner === this) ids.push(event.id);
    return ids;
  }

  /** The lane claims the event, whose entry names these claims as its owner. */
  add(entry: Entry): void {
    // A held event can be read again by its id while it is in flight.
    const before = entry.isHead ? this.get(entry.event.id) : undefined;
    if (before !== undefined) this.#count(before, -1);
    this.#inFlight.add(entry);
    this.#count(entry, 1);
  }

  /** Ids of the claimed events that were sent, or are about to be. */
  sentIds(): string[] {
    return [...this.#sent];
  }

  sent(id: string): void {
    if (this.get(id) !== undefined) this.#sent.add(id);
  }

  /** The event's outcome is durable, or the claim was given back. */
  finish(id: string): void {
    const entry = this.get(id);
    if (entry === undefined) return;
    this.#inFlight.remove(entry);
    if (this.#sent.size > 0) this.#sent.delete(id);
    this.#count(entry, -1);
    this.#onFinish(entry);
  }

  finishAll(): void {
    for (const id of this.ids()) this.finish(id);
  }

  #count({ bytes, isHead }: Entry, sign: 1 | -1): void {
    this.#size += sign;
    this.#bytes += sign * bytes;
    if (isHead) this.#headBytes += sign * bytes;
    this.#budget.add(sign * bytes);
  }
}
