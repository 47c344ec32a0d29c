/** Below the broker's default of 1 MiB for a batch. */
const BATCH_BYTES = 900_000;

/** How large a record batch of a topic may become. Only the broker knows, so its refusals are remembered. */
export class BatchLimits {
  readonly #learned = new Map<string, number>();

  of(topic: string): number {
    return this.#learned.get(topic) ?? BATCH_BYTES;
  }

  /** A batch of several records and of this size was refused. */
  refused(topic: string, bytes: number): void {
    this.#learned.set(topic, Math.min(this.of(topic), Math.floor(bytes / 2)));
  }
}
