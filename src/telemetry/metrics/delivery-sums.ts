import type { Clock } from "../../core/clock.ts";

interface Batch {
  readonly pipeline: string;
  readonly delivered: number;
  readonly failed: number;
}

interface DeliverySum extends Batch {
  readonly batches: number;
}

const REPORT_EVERY_MS = 1_000;

/** Sums batches, so that a busy pipeline logs one line per second and a quiet one logs at once. */
export class DeliverySums {
  readonly #clock: Clock;
  readonly #report: (sum: DeliverySum) => void;
  readonly #reportedMs = new Map<string, number>();
  readonly #open = new Map<string, DeliverySum>();

  constructor(clock: Clock, report: (sum: DeliverySum) => void) {
    this.#clock = clock;
    this.#report = report;
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
    const reportedMs = this.#reportedMs.get(pipeline) ?? Number.NEGATIVE_INFINITY;
    const waitMs = Math.max(0, reportedMs + REPORT_EVERY_MS - this.#clock.monotonicMs());
    if (waitMs === 0) this.#close(pipeline);
    else void this.#clock.sleep(waitMs).then(() => this.#close(pipeline));
  }

  flush(): void {
    for (const pipeline of this.#open.keys()) this.#close(pipeline);
  }

  #close(pipeline: string): void {
    const sum = this.#open.get(pipeline);
    this.#open.delete(pipeline);
    this.#reportedMs.set(pipeline, this.#clock.monotonicMs());
    if (sum !== undefined && sum.delivered + sum.failed > 0) this.#report(sum);
  }
}
