import type { Clock } from "../core/clock.ts";

interface Batch {
  readonly pipeline: string;
  readonly delivered: number;
  readonly failed: number;
}

interface DeliverySum extends Batch {
  readonly batches: number;
}

const TELL_EVERY_MS = 1_000;

/** Sums batches up, so that a busy pipeline has one line a second and a quiet one its line at once. */
export class DeliverySums {
  readonly #clock: Clock;
  readonly #tell: (sum: DeliverySum) => void;
  readonly #toldMs = new Map<string, number>();
  readonly #open = new Map<string, DeliverySum>();

  constructor(clock: Clock, tell: (sum: DeliverySum) => void) {
    this.#clock = clock;
    this.#tell = tell;
  }

  add({ pipeline, delivered, failed }: Batch): void {
    const sum = this.#open.get(pipeline);
    const batches = (sum?.batches ?? 0) + 1;
    this.#open.set(pipeline, {
      pipeline,
      delivered: (sum?.delivered ?? 0) + delivered,
      failed: (sum?.failed ?? 0) + failed,
      batches,
    });
    if (sum !== undefined) return;
    const toldMs = this.#toldMs.get(pipeline) ?? Number.NEGATIVE_INFINITY;
    const waitMs = Math.max(0, toldMs + TELL_EVERY_MS - this.#clock.monotonicMs());
    if (waitMs === 0) this.#close(pipeline);
    else void this.#clock.sleep(waitMs).then(() => this.#close(pipeline));
  }

  flush(): void {
    for (const pipeline of this.#open.keys()) this.#close(pipeline);
  }

  #close(pipeline: string): void {
    const sum = this.#open.get(pipeline);
    this.#open.delete(pipeline);
    this.#toldMs.set(pipeline, this.#clock.monotonicMs());
    if (sum !== undefined && sum.delivered + sum.failed > 0) this.#tell(sum);
  }
}
