import type { Clock } from "../../core/clock.ts";
import { reasonOf } from "../../core/errors.ts";

/** Whether the database answers, and why not. */
export interface DatabaseState {
  readonly answers: boolean;
  /** Why not, in words. */
  readonly reason: string | null;
}

/** Work of the relay that succeeded this recently proves as much as a query. */
const EVIDENCE_MS = 5_000;
const TIMEOUT_MS = 1_000;

/**
 * Whether the database answers. Never waits long for it, and sends no query when the relay's own work has just proved
 * it.
 */
export class DatabaseCheck {
  readonly #clock: Clock;
  readonly #ask: () => Promise<void>;
  #answeredMs = Number.NEGATIVE_INFINITY;
  #asking: Promise<DatabaseState> | null = null;

  /** `ask` resolves when the database answers correctly. It may hang. */
  constructor(clock: Clock, ask: () => Promise<void>) {
    this.#clock = clock;
    this.#ask = ask;
  }

  /** Must be called whenever the database has answered anything. */
  answered(): void {
    this.#answeredMs = this.#clock.monotonicMs();
  }

  async state(): Promise<DatabaseState> {
    if (this.#clock.monotonicMs() - this.#answeredMs < EVIDENCE_MS) return { answers: true, reason: null };
    this.#asking ??= this.#question().finally(() => {
      this.#asking = null;
    });
    const timeout = new AbortController();
    const silent = { answers: false, reason: `it did not answer within ${TIMEOUT_MS} ms` };
    const state = await Promise.race([this.#asking, this.#clock.sleep(TIMEOUT_MS, timeout.signal).then(() => silent)]);
    timeout.abort();
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
