import type { QueueStore, SourceWarning } from "../../ports/queue-store.ts";
import type { TechnicalEvents } from "../../ports/technical-events.ts";

/** Reports each warning of a source once, again when its text changes, and once more when it is over. */
export class SourceWarnings {
  readonly #pipeline: string;
  readonly #events: TechnicalEvents;
  readonly #ask: NonNullable<QueueStore["warnings"]>;
  #reported: readonly SourceWarning[] = [];

  constructor(pipeline: string, events: TechnicalEvents, ask: NonNullable<QueueStore["warnings"]>) {
    this.#pipeline = pipeline;
    this.#events = events;
    this.#ask = ask;
  }

  /** Reads the present warnings and reports what has changed since the last check. */
  async check(): Promise<void> {
    const before = this.#reported;
    const now = await this.#ask();
    this.#reported = now;
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
