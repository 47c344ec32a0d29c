import { AnswerBook } from "../../core/answer-times.ts";
import type { Clock } from "../../core/clock.ts";
import { MarkerBook } from "../marker-book.ts";
import { DeliveryWindow } from "./delivery-window.ts";
import { FlowMeter } from "./flow-meter.ts";
import { Metrics, type MetricsOptions } from "./metrics.ts";
import { PointRing } from "./point-ring.ts";

/** What the process remembers across reloads, which replace the relay. */
export class OverviewHistory {
  readonly window: DeliveryWindow;
  readonly markers: MarkerBook;
  readonly answers: AnswerBook;
  readonly flow = new FlowMeter();
  readonly ring = new PointRing();
  #metrics: Metrics | null = null;

  constructor(clock: Clock) {
    this.window = new DeliveryWindow(clock);
    this.answers = new AnswerBook(clock);
    this.markers = new MarkerBook(clock);
    this.markers.note("this process has started");
  }

  /** The process's metrics, from now on about this relay. */
  metrics(options: MetricsOptions): Metrics {
    if (this.#metrics === null) this.#metrics = new Metrics(options);
    else this.#metrics.show(options);
    return this.#metrics;
  }

  stop(): void {
    this.#metrics?.stop();
  }
}
