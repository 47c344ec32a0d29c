import { delivered, type Failed, type Outcome } from "../core/outcome.ts";
import type { PublishClock } from "./deadline.ts";
import type { Entry } from "./lane-queue.ts";
import type { Answers } from "./sender.ts";

/** What becomes of the outcomes of one publish. */
interface AnswersListener {
  /** True when the outcomes are void. */
  isOver(): boolean;
  delivered(entries: readonly Entry[], batch: bigint | null): void;
  failed(entry: Entry, outcome: Failed): void;
}

/**
 * The outcomes of one publish, each counted once. Events that are reported as delivered in the same turn are passed on
 * together: that is most of what the engine does, and one by one it would cost several times as much.
 */
export class PublishAnswers implements Answers {
  readonly #entries: readonly Entry[];
  readonly #measured: PublishClock | null;
  readonly #listener: AnswersListener;
  readonly #isOpen: Uint8Array;
  #delivered: Entry[] = [];

  constructor(entries: readonly Entry[], measured: PublishClock | null, listener: AnswersListener) {
    this.#entries = entries;
    this.#measured = measured;
    this.#listener = listener;
    this.#isOpen = new Uint8Array(entries.length).fill(1);
  }

  readonly report = (index: number, outcome: Outcome): void => {
    if (this.#isOpen[index] !== 1 || this.#listener.isOver()) return;
    this.#isOpen[index] = 0;
    this.#measured?.answered(outcome);
    const entry = this.#entries[index]!;
    if (outcome.kind === "delivered") {
      this.#delivered.push(entry);
      if (this.#delivered.length === 1) queueMicrotask(() => this.#passOn());
    } else {
      this.#passOn();
      this.#listener.failed(entry, outcome);
    }
  };

  readonly committed = (batch: bigint): void => {
    if (this.#listener.isOver()) return;
    this.#isOpen.fill(0);
    this.#measured?.answered(delivered);
    this.#listener.delivered(this.#entries, batch);
  };

  /** Ends the publish: passes on what was delivered, and returns the events without an outcome by their index. */
  unanswered(): (readonly [number, Entry])[] {
    this.#passOn();
    const open: (readonly [number, Entry])[] = [];
    for (let index = 0; index < this.#entries.length; index += 1) {
      if (this.#isOpen[index] === 1) open.push([index, this.#entries[index]!]);
    }
    return open;
  }

  #passOn(): void {
    const entries = this.#delivered;
    if (entries.length === 0 || this.#listener.isOver()) return;
    this.#delivered = [];
    this.#listener.delivered(entries, null);
  }
}
