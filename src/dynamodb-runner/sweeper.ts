import type { Clock } from "../core/clock.ts";
import type { Lease } from "./lease.ts";

interface SweeperOptions {
  readonly lease: Lease;
  readonly clock: Clock;
  readonly everyMs: number;
  /** Whether the table was searched before; then the stream contains everything since. */
  readonly isSearched: boolean;
  readonly search: (signal: AbortSignal) => Promise<void>;
  /** Called after the search: the shards may now be read. */
  readonly searched: () => void;
  readonly sweep: () => Promise<unknown>;
  readonly broken: (error: unknown) => void;
  readonly works: () => void;
}

/** Stored as the position of the sweep row: the table was searched. */
const SEARCHED = "searched";
const SEARCH_AGAIN_MS = 1_000;

/** Relays due intents periodically. The first owner ever searches the table before that. */
export class Sweeper {
  readonly #options: SweeperOptions;
  #isSearched: boolean;

  constructor(options: SweeperOptions) {
    this.#options = options;
    this.#isSearched = options.isSearched;
  }

  /** Never rejects; ends when the lease is lost or the signal aborts. */
  async run(stop: AbortSignal): Promise<void> {
    const { broken, clock, everyMs, lease, works } = this.#options;
    const signal = AbortSignal.any([stop, lease.lost]);
    while (!signal.aborted) {
      try {
        if (await lease.isHeld()) await this.#round(signal);
        works();
      } catch (error) {
        broken(error);
      }
      // Retry the search sooner than a sweep, because the shards wait for it.
      await clock.sleep(this.#isSearched ? everyMs : Math.min(SEARCH_AGAIN_MS, everyMs), signal);
    }
  }

  async #round(signal: AbortSignal): Promise<void> {
    const { lease, search, searched, sweep } = this.#options;
    if (!this.#isSearched) {
      await search(signal);
      if (signal.aborted) return;
      this.#isSearched = await lease.save({ position: SEARCHED });
      if (!this.#isSearched) return;
      searched();
    }
    await sweep();
  }
}
