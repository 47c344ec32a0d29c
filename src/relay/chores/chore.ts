import type { Clock } from "../../core/clock.ts";
import { reasonOf, stackOf } from "../../core/errors.ts";
import type { TechnicalEvents } from "../../ports/technical-events.ts";

interface ChoreOptions {
  readonly name: string;
  readonly pipeline: string;
  readonly everyMs: number;
  /** The first time at once, and not only after a pause. */
  readonly atOnce?: boolean;
  readonly clock: Clock;
  readonly events: TechnicalEvents;
  readonly run: () => Promise<void>;
}

/**
 * Something done again and again beside the delivery. Stop before start and a second stop are legal; stop returns when
 * nothing runs any more. A failing chore is told and tried again at its next time.
 */
export class Chore {
  readonly #options: ChoreOptions;
  readonly #stopped = new AbortController();
  #running: Promise<void> | null = null;

  constructor(options: ChoreOptions) {
    this.#options = options;
  }

  start(): void {
    if (this.#running === null && !this.#stopped.signal.aborted) this.#running = this.#loop();
  }

  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.#running;
  }

  async #loop(): Promise<void> {
    const { atOnce = false, clock, everyMs, events, name, pipeline, run } = this.#options;
    const { signal } = this.#stopped;
    for (let pauseMs = atOnce ? 0 : everyMs; ; pauseMs = everyMs) {
      if (pauseMs > 0) await clock.sleep(pauseMs, signal);
      if (signal.aborted) return;
      try {
        await run();
      } catch (error) {
        events.emit("ChoreFailed", { pipeline, chore: name, reason: reasonOf(error), stack: stackOf(error) });
      }
    }
  }
}
