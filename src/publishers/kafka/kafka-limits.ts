/** Below the broker's default of 1 MiB for a batch. */
const BATCH_BYTES = 900_000;

/** The maximum size of a topic's record batch. Only the broker knows it, so this learns from refused batches. */
export class BatchLimits {
  readonly #learned = new Map<string, number>();

  of(topic: string): number {
    return this.#learned.get(topic) ?? BATCH_BYTES;
  }

  /** The broker refused a batch of several records with this size. */
  refused(topic: string, bytes: number): void {
    this.#learned.set(topic, Math.min(this.of(topic), Math.floor(bytes / 2)));
  }
}
