/** Who is told of what besides those who ask. */
type Receiver = "remote_write" | "loki" | "traces";

interface PushFigures {
  readonly receiver: Receiver;
  readonly failures: number;
  /** Lines or spans that the receiver never got. */
  readonly dropped: number;
}

/** How the pushes of this process went, over all reloads. */
export class PushTally {
  readonly #figures = new Map<Receiver, PushFigures>();

  /** From now on it is counted, at 0: alarms look for changes. */
  expect(receiver: Receiver): void {
    this.#add(receiver, 0, 0);
  }

  failed(receiver: Receiver): void {
    this.#add(receiver, 1, 0);
  }

  dropped(receiver: Receiver, count: number): void {
    this.#add(receiver, 0, count);
  }

  figures(): readonly PushFigures[] {
    return [...this.#figures.values()];
  }

  #add(receiver: Receiver, failures: number, dropped: number): void {
    const before = this.#figures.get(receiver) ?? { receiver, failures: 0, dropped: 0 };
    const sums = { failures: before.failures + failures, dropped: before.dropped + dropped };
    this.#figures.set(receiver, { receiver, ...sums });
  }
}
