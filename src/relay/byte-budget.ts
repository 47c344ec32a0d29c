/** The memory that the claimed events of all pipelines of a process take. */
export class ByteBudget {
  readonly #pipelines: number;
  #used = 0;

  constructor(pipelines: number) {
    this.#pipelines = Math.max(1, pipelines);
  }

  /** Negative for events that are not claimed any more. */
  add(bytes: number): void {
    this.#used += bytes;
  }

  /**
   * Each pipeline always has its share, and may use more while the others leave memory free. Half of its share is
   * reserved for new events, so that held ones cannot starve them.
   */
  hasRoom(own: { readonly bytes: number; readonly headBytes: number }, bytesMax: number): boolean {
    const share = bytesMax / this.#pipelines;
    return this.#used < bytesMax || own.bytes < share || own.bytes - own.headBytes < share / 2;
  }

  /**
   * The bytes that held events of a pipeline may take: without a bound, large events that always fail would take all.
   */
  headBytesMax(bytesMax: number): number {
    return bytesMax / this.#pipelines / 2;
  }

  /** The bytes of one page. Small enough that all pipelines can read a page at the same time. */
  pageBytes(bytesMax: number): number {
    return Math.max(1, Math.floor(bytesMax / 4 / Math.min(this.#pipelines, PAGES_MAX)));
  }
}

/** With more pipelines than this, pages do not get smaller: the extra queries would cost more than the memory. */
const PAGES_MAX = 16;
