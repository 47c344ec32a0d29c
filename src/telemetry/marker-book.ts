import type { Clock } from "../core/clock.ts";
import type { Listenable } from "./listenable.ts";

/** A moment to mark in the charts. */
export interface Marker {
  readonly at: string;
  readonly what: string;
  readonly pipeline: string | null;
}

/** Bound for the markers kept. */
export const MARKERS_MAX = 100;

/** The latest moments to mark in the charts, from technical events: circuits and pauses. */
export class MarkerBook {
  readonly #clock: Clock;
  readonly #paused = new Set<string>();
  #markers: readonly Marker[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  note(what: string, pipeline: string | null = null): void {
    const at = new Date(this.#clock.wallMs()).toISOString();
    this.#markers = [...this.#markers, { at, what, pipeline }].slice(-MARKERS_MAX);
  }

  listen(events: Listenable): void {
    events.on("CircuitOpened", ({ destination, topic }) =>
      this.note(`circuit of ${nameOf(destination, topic)} opened`),
    );
    events.on("CircuitClosed", ({ destination, topic }) =>
      this.note(`circuit of ${nameOf(destination, topic)} closed`),
    );
    // An instance that joins reports existing pauses again.
    events.on("PipelinePaused", ({ by, pipeline }) => {
      if (!this.#paused.has(pipeline)) this.note(`paused by ${by}`, pipeline);
      this.#paused.add(pipeline);
    });
    events.on("PipelineResumed", ({ pipeline }) => {
      if (this.#paused.delete(pipeline)) this.note("resumed", pipeline);
    });
  }

  /** Oldest first. */
  get markers(): readonly Marker[] {
    return this.#markers;
  }
}

function nameOf(destination: string, topic: string | null): string {
  return topic === null ? destination : `${destination} topic ${topic}`;
}
