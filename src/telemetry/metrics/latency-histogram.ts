import { Histogram, type MetricObjectWithValues, type MetricValueWithName } from "prom-client";
import { LATENCY_BOUNDS_MS, type LatencyCounts } from "../../core/latency.ts";

interface Sums {
  readonly labels: Readonly<Record<string, string>>;
  readonly counts: number[];
  sumMs: number;
}

/** A histogram that adds whole batches: the library's own observes one value per call. */
export class LatencyHistogram<Label extends string> extends Histogram<Label> {
  readonly #about: { readonly name: string; readonly help: string };
  readonly #sums = new Map<string, Sums>();

  constructor(...[options]: ConstructorParameters<typeof Histogram<Label>>) {
    super({ ...options, buckets: LATENCY_BOUNDS_MS.map((ms) => ms / 1_000) });
    this.#about = options;
  }

  add(labels: Readonly<Record<Label, string>>, { counts, sumMs }: LatencyCounts): void {
    const key = Object.values(labels).join("\n");
    const sums = this.#sums.get(key) ?? { labels, counts: counts.map(() => 0), sumMs: 0 };
    this.#sums.set(key, sums);
    for (const [at, count] of counts.entries()) sums.counts[at]! += count;
    sums.sumMs += sumMs;
  }

  override async get(): Promise<MetricObjectWithValues<MetricValueWithName<Label>>> {
    const { name, help } = this.#about;
    const values = [...this.#sums.values()].flatMap((sums) =>
      histogramSamples(name, LATENCY_BOUNDS_MS, sums),
    ) as MetricValueWithName<Label>[];
    return { name, help, type: "histogram", values, aggregator: "sum", collect: () => {} } as never;
  }

  /** Called by the library for its text format. */
  getForPromString = () => this.get();
}

/** The samples from which the library writes a histogram. */
export function histogramSamples(name: string, boundsMs: readonly number[], sums: Readonly<Sums>) {
  const { labels, counts, sumMs } = sums;
  let below = 0;
  const buckets = counts.map((count, at) => {
    below += count;
    const bound = boundsMs[at];
    const le = bound === undefined ? "+Inf" : String(bound / 1_000);
    return { metricName: `${name}_bucket`, labels: { le, ...labels }, value: below };
  });
  return [
    ...buckets,
    { metricName: `${name}_sum`, labels, value: sumMs / 1_000 },
    { metricName: `${name}_count`, labels, value: below },
  ];
}
