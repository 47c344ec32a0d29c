/** What all pipelines of a process hold in memory of the events that they have claimed. */
export class ByteBudget {
  readonly #pipelines: number;
  #used = 0;

  constructor(pipelines: number) {
    this.#pipelines = Math.max(1, pipelines);
  }

  add(bytes: number): void {
    this.#used += bytes;
  }

  remove(bytes: number): void {
    this.#used -= bytes;
  }

  /** Each pipeline has its share, whatever the others hold; beyond it, it may use what they leave. */
  hasRoom(ownBytes: number, bytesMax: number): boolean {
    return this.#used < bytesMax || ownBytes < bytesMax / this.#pipelines;
  }

  /** All pipelines may read at the same time. */
  pageBytes(bytesMax: number): number {
    return Math.max(1, Math.floor(bytesMax / 4 / Math.min(this.#pipelines, PAGES_MAX)));
  }
}

/** Smaller pages would cost more than they save. */
const PAGES_MAX = 16;
