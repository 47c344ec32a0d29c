import type { InFlightSet } from "../core/in-flight.ts";
import type { ByteBudget } from "./byte-budget.ts";
import type { Entry } from "./lane-queue.ts";

/** The events that a lane has claimed, from the claim until their outcome is durable. */
export class LaneClaims {
  readonly #entries = new Map<string, Entry>();
  readonly #sent = new Set<string>();
  readonly #budget: ByteBudget;
  readonly #inFlight: InFlightSet;
  readonly #onFinish: (entry: Entry) => void;
  #bytes = 0;
  #headBytes = 0;

  constructor(budget: ByteBudget, inFlight: InFlightSet, onFinish: (entry: Entry) => void) {
    this.#budget = budget;
    this.#inFlight = inFlight;
    this.#onFinish = onFinish;
  }

  get size(): number {
    return this.#entries.size;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** The bytes of held events that are retried. */
  get headBytes(): number {
    return this.#headBytes;
  }

  get(id: string): Entry | undefined {
    return this.#entries.get(id);
  }

  /** When the event was written; undefined when the lane has no claim on it. */
  readonly createdAtOf = (id: string): string | null | undefined => this.#entries.get(id)?.event.createdAt;

  ids(): string[] {
    return [...this.#entries.keys()];
  }

  /** The event was claimed by this run. */
  add(entry: Entry, run: number): void {
    const { id } = entry.event;
    this.#entries.set(id, entry);
    this.#bytes += entry.bytes;
    if (entry.isHead) this.#headBytes += entry.bytes;
    this.#budget.add(entry.bytes);
    this.#inFlight.add(id, run);
  }

  /** Ids of the claimed events that were sent, or are about to be. */
  sentIds(): string[] {
    return [...this.#sent];
  }

  sent(id: string): void {
    if (this.#entries.has(id)) this.#sent.add(id);
  }

  /** The event's outcome is durable, or the claim was given back. */
  finish(id: string): void {
    const entry = this.#entries.get(id);
    if (entry === undefined) return;
    this.#entries.delete(id);
    this.#sent.delete(id);
    this.#bytes -= entry.bytes;
    if (entry.isHead) this.#headBytes -= entry.bytes;
    this.#budget.remove(entry.bytes);
    this.#inFlight.remove(id, entry.event.key);
    this.#onFinish(entry);
  }

  finishAll(): void {
    for (const id of this.ids()) this.finish(id);
  }
}
