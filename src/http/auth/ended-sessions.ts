import { createHash } from "node:crypto";
import type { Clock } from "../../core/clock.ts";

const LOOK_EVERY_MS = 5_000;
/** Nobody waits longer than this for a database that does not answer: people must get in above all then. */
const PATIENCE_MS = 1_000;
/** The longest life of a session. Whatever ended before is refused as expired anyway. */
const KEPT_MS = 12 * 3_600_000;

/** The mark of a session in the audit, from which its cookie cannot be made. */
export function sessionMark(id: string): string {
  return createHash("sha256").update(id).digest("hex").slice(0, 32);
}

/**
 * Sessions whose owner has logged out. A cookie is worth something to whoever has a copy of it, so the service remembers
 * them: its own at once, those of the other instances and of before a restart by the audit, which all of them write.
 */
export class EndedSessions {
  readonly #clock: Clock;
  /** Marks of the sessions that ended in the last hours. */
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

  /** Looks what has ended elsewhere, if that is due. Only the first look is waited for, and not for long. */
  async refresh(): Promise<void> {
    if (this.#look === null && this.#clock.monotonicMs() - this.#lookedMs >= LOOK_EVERY_MS) {
      this.#look = this.#lookNow().finally(() => {
        this.#look = null;
        this.#lookedMs = this.#clock.monotonicMs();
      });
    }
    if (this.#hasLooked || this.#look === null) return;
    const patience = new AbortController();
    await Promise.race([this.#look, this.#clock.sleep(PATIENCE_MS, patience.signal)]);
    patience.abort();
  }

  async #lookNow(): Promise<void> {
    try {
      for (const mark of await this.#read()) this.#remember(mark);
      this.#hasLooked = true;
      const nowMs = this.#clock.monotonicMs();
      for (const [mark, untilMs] of this.#untilByMark) if (untilMs < nowMs) this.#untilByMark.delete(mark);
    } catch {
      // Without a database only the sessions that ended here are known. It is asked again soon.
    }
  }

  #remember(mark: string): void {
    this.#untilByMark.set(mark, this.#clock.monotonicMs() + KEPT_MS);
  }
}
