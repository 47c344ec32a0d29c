import { randomInt, randomUUID } from "node:crypto";

/**
 * Time, timers and chance, injected everywhere, so that the same engine runs on virtual time in the simulator.
 * This file is the only one in core, ports and relay that may touch the real ones.
 */
export interface Clock {
  /** Wall time in ms. For people only: no decision of the engine hangs on it, but for noticing that it jumped. */
  wallMs(): number;
  /** Monotonic time in ms. Every deadline in the process is measured by it. */
  monotonicMs(): number;
  /** Resolves after `ms`, never earlier, or as soon as the signal aborts. Never rejects. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

export interface Random {
  /** In [0, 1). */
  next(): number;
  uuid(): string;
}

/** Timers beyond this overflow in Node and fire at once. */
const SLEEP_MAX_MS = 2_147_483_647;

/** Node's timers count in whole milliseconds and may fire this much too early; whoever sleeps until a moment is past it. */
const EARLY_MS = 1;

export const systemClock: Clock = {
  wallMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  sleep: (ms, signal) =>
    new Promise((resolve) => {
      if (signal?.aborted) return resolve();
      const done = () => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", done);
        resolve();
      };
      const timer = setTimeout(done, Math.min(Math.max(0, Math.ceil(ms) + EARLY_MS), SLEEP_MAX_MS));
      signal?.addEventListener("abort", done, { once: true });
    }),
};

export const systemRandom: Random = {
  next: () => randomInt(0, 2 ** 47) / 2 ** 47,
  uuid: () => randomUUID(),
};
