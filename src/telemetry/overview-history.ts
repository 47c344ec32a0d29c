import type { Clock } from "../core/clock.ts";
import { DeliveryWindow } from "./delivery-window.ts";
import { FlowMeter } from "./flow-meter.ts";
import { MarkerBook } from "./marker-book.ts";
import { PointRing } from "./point-ring.ts";

/** What an overview remembers as long as the process runs, whatever relay works in it at the moment. */
export class OverviewHistory {
  readonly window: DeliveryWindow;
  readonly markers: MarkerBook;
  readonly flow = new FlowMeter();
  readonly ring = new PointRing();

  constructor(clock: Clock) {
    this.window = new DeliveryWindow(clock);
    this.markers = new MarkerBook(clock);
    this.markers.note("this process has started");
  }
}
