import type { QueueStore, SourceWarning } from "../../ports/queue-store.ts";
import type { TechnicalEvents } from "../../ports/technical-events.ts";

/** Tells each warning of a source once, again when its words change, and once more when it is over. */
export class SourceWarnings {
  readonly #pipeline: string;
  readonly #events: TechnicalEvents;
  readonly #ask: NonNullable<QueueStore["warnings"]>;
  #told: readonly SourceWarning[] = [];

  constructor(pipeline: string, events: TechnicalEvents, ask: NonNullable<QueueStore["warnings"]>) {
    this.#pipeline = pipeline;
    this.#events = events;
    this.#ask = ask;
  }

  async look(): Promise<void> {
    const before = this.#told;
    const now = await this.#ask();
    this.#told = now;
    for (const { code } of before) {
      if (now.every((warning) => warning.code !== code)) {
        this.#events.emit("SourceWarningEnded", { pipeline: this.#pipeline, code });
      }
    }
    for (const { code, reason } of now) {
      if (before.some((warning) => warning.code === code && warning.reason === reason)) continue;
      this.#events.emit("SourceWarned", { pipeline: this.#pipeline, code, reason });
    }
  }
}
