import type { Clock } from "../../core/clock.ts";
import type { SeededRandom } from "./seeded-random.ts";
import type { VirtualTime } from "./virtual-clock.ts";

interface PauseOptions {
  readonly forMs: number;
  /** The machine is suspended: its monotonic clock stops, its wall clock continues. */
  readonly suspended: boolean;
}

/**
 * A process with its own clocks. It runs only when a timer fires or an answer arrives. So timers and answers of a paused
 * process are delivered when it is resumed, and those of a crashed process never.
 */
export class SimProcess {
  readonly name: string;
  readonly random: SeededRandom;
  readonly clock: Clock;
  readonly #time: VirtualTime;
  readonly #onCrash: () => void;
  readonly #crashed = new AbortController();
  #isAlive = true;
  #leaseFromMs = 0;
  #wasClockSet = false;
  #resumesAtMs = 0;
  #suspendedFromMs: number | null = null;
  #lostMs = 0;
  #wallOffsetMs: number;

  constructor(name: string, time: VirtualTime, random: SeededRandom, onCrash: () => void) {
    this.name = name;
    this.random = random;
    this.#time = time;
    this.#onCrash = onCrash;
    this.#wallOffsetMs = WALL_START_MS + random.between(-5_000, 5_000);
    this.clock = {
      wallMs: () => this.#time.nowMs + this.#wallOffsetMs,
      monotonicMs: () => this.#monotonicMs(),
      sleep: (ms, signal) => this.#sleep(ms, signal),
    };
  }

  get isAlive(): boolean {
    return this.#isAlive;
  }

  get isPaused(): boolean {
    return this.#time.nowMs < this.#resumesAtMs;
  }

  /** The last renewal of its lease that the database confirmed to the process. */
  get leaseFromMs(): number {
    return this.#leaseFromMs;
  }

  /** The answer to an earlier request may arrive after the answer to a later one. */
  prolongLease(fromMs: number): void {
    this.#leaseFromMs = Math.max(this.#leaseFromMs, fromMs);
  }

  get wasSuspended(): boolean {
    return this.#lostMs > 0 || this.#suspendedFromMs !== null;
  }

  /** Whether its wall clock was set, which may even hide a suspend of the machine. */
  get wasClockSet(): boolean {
    return this.#wasClockSet;
  }

  /** Aborts when the process crashes: messages on the wire may still arrive, but no more are sent. */
  get crashed(): AbortSignal {
    return this.#crashed.signal;
  }

  /** Calls `run` in the process as soon as it is not paused. */
  reach(delayMs: number, run: () => void): void {
    this.#time.after(delayMs, () => this.#enter(run));
  }

  crash(): void {
    if (!this.#isAlive) return;
    this.#isAlive = false;
    this.#crashed.abort();
    this.#onCrash();
  }

  /** The process stopped gracefully. */
  exit(): void {
    this.#isAlive = false;
  }

  pause({ forMs, suspended }: PauseOptions): void {
    if (this.isPaused) return;
    this.#noticeResumption();
    this.#resumesAtMs = this.#time.nowMs + forMs;
    if (!suspended) return;
    this.#suspendedFromMs = this.#time.nowMs;
  }

  stepWallClock(byMs: number): void {
    this.#wallOffsetMs += byMs;
    this.#wasClockSet = true;
  }

  #enter(run: () => void): void {
    if (!this.#isAlive) return;
    if (this.isPaused) this.#time.after(this.#resumesAtMs - this.#time.nowMs, () => this.#enter(run));
    else run();
  }

  #monotonicMs(): number {
    this.#noticeResumption();
    return (this.#suspendedFromMs ?? this.#time.nowMs) - this.#lostMs;
  }

  #noticeResumption(): void {
    if (this.#suspendedFromMs === null || this.isPaused) return;
    this.#lostMs += this.#resumesAtMs - this.#suspendedFromMs;
    this.#suspendedFromMs = null;
  }

  #sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      if (signal?.aborted) return resolve();
      const waitMs = Math.max(SHORTEST_SLEEP_MS, ms);
      const dueMs = this.#monotonicMs() + waitMs;
      const fire = (): void => {
        if (!this.#isAlive) return;
        // The timer did not run while the machine was suspended.
        const leftMs = dueMs - this.#monotonicMs();
        if (this.isPaused) timer = this.#time.after(this.#resumesAtMs - this.#time.nowMs, fire);
        else if (leftMs > 0) timer = this.#time.after(leftMs, fire);
        else done();
      };
      const done = (): void => {
        timer.cancelled = true;
        signal?.removeEventListener("abort", done);
        resolve();
      };
      let timer = this.#time.after(waitMs, fire);
      signal?.addEventListener("abort", done, { once: true });
    });
  }
}

/** The shortest delay of a Node timer. */
const SHORTEST_SLEEP_MS = 1;
export const WALL_START_MS = 1_700_000_000_000;
