import {
  Gauge,
  Histogram,
  type MetricObjectWithValues,
  type MetricValueWithName,
  type OpenMetricsContentType,
  type Registry,
} from "prom-client";
import { ANSWER_BOUNDS_MS } from "../../core/answer-histogram.ts";
import type { AnswerBook } from "../../core/answer-times.ts";
import { histogramSamples } from "./latency-histogram.ts";

/** Every second bound is enough for a chart and halves the number of series. */
const SHOWN_MS: readonly number[] = ANSWER_BOUNDS_MS.filter((ms) =>
  [1, 2, 5].includes(ms / 10 ** Math.floor(Math.log10(ms))),
);

const NAME = "outbox_relay_answer_seconds";
const HELP = "Seconds from sending a request or a batch to the destination's answer";

/** Metrics of the time that destinations take to answer, and of the slow ones. */
export class AnswerMetrics {
  readonly #book: AnswerBook;
  readonly #slow: Gauge<"destination">;

  constructor(registry: Registry<OpenMetricsContentType>, book: AnswerBook) {
    this.#book = book;
    const registers = [registry];
    new AnswerHistogram({ name: NAME, help: HELP, labelNames: ["destination"], registers }, book);
    this.#slow = new Gauge({
      name: "outbox_relay_destination_slow",
      help: "1 while a destination answers several times slower than it used to",
      labelNames: ["destination"],
      registers,
    });
  }

  refresh(): void {
    this.#slow.reset();
    for (const [destination, times] of this.#book.all()) {
      this.#slow.set({ destination }, times.figures().slow === null ? 0 : 1);
    }
  }
}

/** Reads the counts of the answer book at each scrape, and counts nothing itself. */
class AnswerHistogram extends Histogram<"destination"> {
  readonly #book: AnswerBook;

  constructor(options: ConstructorParameters<typeof Histogram<"destination">>[0], book: AnswerBook) {
    super({ ...options, buckets: SHOWN_MS.map((ms) => ms / 1_000) });
    this.#book = book;
  }

  override async get(): Promise<MetricObjectWithValues<MetricValueWithName<"destination">>> {
    const values = [...this.#book.all()].flatMap(([destination, { totals }]) => {
      const { counts, sumMs } = totals;
      return histogramSamples(NAME, SHOWN_MS, { labels: { destination }, counts: shownCounts(counts), sumMs });
    });
    return { name: NAME, help: HELP, type: "histogram", values, aggregator: "sum", collect: () => {} } as never;
  }

  /** Called by the library for its text format. */
  getForPromString = () => this.get();
}

/** Merges the counts of several buckets into one; the last holds those above all bounds. */
function shownCounts(counts: readonly number[]): number[] {
  const shown = new Array<number>(SHOWN_MS.length + 1).fill(0);
  for (const [at, count] of counts.entries()) {
    const bound = ANSWER_BOUNDS_MS[at] ?? Number.POSITIVE_INFINITY;
    const to = SHOWN_MS.findIndex((ms) => bound <= ms);
    shown[to < 0 ? SHOWN_MS.length : to]! += count;
  }
  return shown;
}
