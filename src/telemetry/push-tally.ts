/** Where this process pushes its telemetry to. */
type Receiver = "remote_write" | "loki" | "traces" | "webhook";

interface PushFigures {
  readonly receiver: Receiver;
  readonly failures: number;
  /** Lines or spans that never reached the receiver. */
  readonly dropped: number;
}

/** Counts failed and dropped pushes of this process, across reloads. */
export class PushTally {
  readonly #figures = new Map<Receiver, PushFigures>();

  /** Starts this receiver's counters at 0: alerts watch for increases. */
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
