import { createHash } from "node:crypto";
import type { Clock } from "../../core/clock.ts";

const LOOK_EVERY_MS = 5_000;
/** The longest wait for a database that does not answer: users must be able to log in especially then. */
const TIMEOUT_MS = 1_000;
/** The longest life of a session. Sessions that ended earlier are refused as expired anyway. */
const KEPT_MS = 12 * 3_600_000;

/** The hash of a session id for the audit. The cookie cannot be derived from it. */
export function sessionMark(id: string): string {
  return createHash("sha256").update(id).digest("hex").slice(0, 32);
}

/**
 * Sessions that a logout has ended. A copied cookie stays valid after the browser forgets its own, so the service must
 * remember ended sessions: its own at once, those of other instances and of the time before a restart from the audit,
 * which every instance writes.
 */
export class EndedSessions {
  readonly #clock: Clock;
  /** Hashes of the sessions that ended in the last hours. */
  readonly #read: () => Promise<readonly string[]>;
  readonly #untilByMark = new Map<string, number>();
  #look: Promise<void> | null = null;
  #lookedMs = Number.NEGATIVE_INFINITY;
  #hasLooked = false;

  constructor(clock: Clock, read: () => Promise<readonly string[]>) {
    this.#clock = clock;
    this.#read = read;
  }

  end(id: string): void {
    this.#remember(sessionMark(id));
  }

  has(id: string): boolean {
    return this.#untilByMark.has(sessionMark(id));
  }

  /** Reads which sessions ended on other instances, if that is due. Waits for the first read only, and only briefly. */
  async refresh(): Promise<void> {
    if (this.#look === null && this.#clock.monotonicMs() - this.#lookedMs >= LOOK_EVERY_MS) {
      this.#look = this.#lookNow().finally(() => {
        this.#look = null;
        this.#lookedMs = this.#clock.monotonicMs();
      });
    }
    if (this.#hasLooked || this.#look === null) return;
    const timeout = new AbortController();
    await Promise.race([this.#look, this.#clock.sleep(TIMEOUT_MS, timeout.signal)]);
    timeout.abort();
  }

  async #lookNow(): Promise<void> {
    try {
      for (const mark of await this.#read()) this.#remember(mark);
      this.#hasLooked = true;
      const nowMs = this.#clock.monotonicMs();
      for (const [mark, untilMs] of this.#untilByMark) if (untilMs < nowMs) this.#untilByMark.delete(mark);
    } catch {
      // Without a database only the sessions that ended on this instance are known. The next refresh retries soon.
    }
  }

  #remember(mark: string): void {
    this.#untilByMark.set(mark, this.#clock.monotonicMs() + KEPT_MS);
  }
}
