import type { Clock } from "../../core/clock.ts";
import { reasonOf, stackOf } from "../../core/errors.ts";
import type { TechnicalEvents } from "../../ports/technical-events.ts";

interface ChoreOptions {
  readonly name: string;
  readonly pipeline: string;
  readonly everyMs: number;
  /** Runs for the first time at once instead of after a pause. */
  readonly atOnce?: boolean;
  readonly clock: Clock;
  readonly events: TechnicalEvents;
  readonly run: () => Promise<void>;
}

/**
 * Periodic work besides the delivery. A stop before the start and a second stop are legal; stop resolves when nothing
 * runs any more. A failure is reported as ChoreFailed, and the chore runs again at its next time.
 */
export class Chore {
  readonly #options: ChoreOptions;
  readonly #stopped = new AbortController();
  #running: Promise<void> | null = null;

  constructor(options: ChoreOptions) {
    this.#options = options;
  }

  /** Starts the loop. Legal to repeat; no effect after a stop. */
  start(): void {
    if (this.#running === null && !this.#stopped.signal.aborted) this.#running = this.#loop();
  }

  /** Ends the loop and waits for the run in progress. */
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
