import { Gauge, type Registry } from "prom-client";

/** The figures of one reader of a log. */
export interface LogFigures {
  readonly pipeline: string;
  /** Null while unknown. */
  readonly lag: number | null;
  readonly parked: number;
  /** Null without a replication slot. */
  readonly slotRetainedBytes: number | null;
  readonly isRetentionWaiting: boolean;
}

/** Metrics of logs, by pipeline: each subscriber of a log is a pipeline. */
export class LogGauges {
  readonly #lag: Gauge<"pipeline">;
  readonly #parked: Gauge<"pipeline">;
  readonly #retained: Gauge<"pipeline">;
  readonly #waiting: Gauge<"pipeline">;

  constructor(registry: Registry<never>) {
    const gauge = (name: string, help: string) => {
      const registers = [registry as Registry];
      return new Gauge({ name: `outbox_relay_log_${name}`, help, labelNames: ["pipeline"] as const, registers });
    };
    this.#lag = gauge("lag_events", "Events of the log that the pipeline has not delivered, counted up to 10,000");
    this.#parked = gauge("parked_events", "Failed and parked events that wait beside the log");
    this.#retained = gauge(
      "slot_retained_bytes",
      "WAL bytes that the server retains for the pipeline's replication slot",
    );
    this.#waiting = gauge("retention_waiting", "1 while the pipeline's checkpoint keeps the log beyond its retention");
  }

  show(figures: readonly LogFigures[]): void {
    for (const gauge of [this.#lag, this.#parked, this.#retained, this.#waiting]) gauge.reset();
    for (const { isRetentionWaiting, lag, parked, pipeline, slotRetainedBytes } of figures) {
      if (lag !== null) this.#lag.set({ pipeline }, lag);
      this.#parked.set({ pipeline }, parked);
      if (slotRetainedBytes !== null) this.#retained.set({ pipeline }, slotRetainedBytes);
      this.#waiting.set({ pipeline }, isRetentionWaiting ? 1 : 0);
    }
  }
}
