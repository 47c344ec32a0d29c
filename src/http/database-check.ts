import type { Clock } from "../core/clock.ts";
import { reasonOf } from "../core/errors.ts";

export interface DatabaseState {
  readonly answers: boolean;
  /** Why not, for people. */
  readonly reason: string | null;
}

/** What the relay's own work showed so recently is as good as a question. */
const EVIDENCE_MS = 5_000;
const PATIENCE_MS = 1_000;

/** Whether the database answers, without ever waiting long for it and without asking when the relay's work tells. */
export class DatabaseCheck {
  readonly #clock: Clock;
  readonly #ask: () => Promise<void>;
  #answeredMs = Number.NEGATIVE_INFINITY;
  #asking: Promise<DatabaseState> | null = null;

  /** `ask` resolves when the database answers as it should. It may hang. */
  constructor(clock: Clock, ask: () => Promise<void>) {
    this.#clock = clock;
    this.#ask = ask;
  }

  /** To be called whenever the database answered anything. */
  answered(): void {
    this.#answeredMs = this.#clock.monotonicMs();
  }

  async state(): Promise<DatabaseState> {
    if (this.#clock.monotonicMs() - this.#answeredMs < EVIDENCE_MS) return { answers: true, reason: null };
    this.#asking ??= this.#question().finally(() => {
      this.#asking = null;
    });
    const patience = new AbortController();
    const silent = { answers: false, reason: `it did not answer within ${PATIENCE_MS} ms` };
    const state = await Promise.race([
      this.#asking,
      this.#clock.sleep(PATIENCE_MS, patience.signal).then(() => silent),
    ]);
    patience.abort();
    return state;
  }

  async #question(): Promise<DatabaseState> {
    try {
      await this.#ask();
      this.answered();
      return { answers: true, reason: null };
    } catch (error) {
      return { answers: false, reason: reasonOf(error) };
    }
  }
}
