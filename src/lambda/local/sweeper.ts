import type { Clock } from "../../core/clock.ts";
import type { Lease } from "./lease.ts";

interface SweeperOptions {
  readonly lease: Lease;
  readonly clock: Clock;
  readonly everyMs: number;
  /** Whether the table was searched before, so that the stream tells everything since. */
  readonly isSearched: boolean;
  readonly search: (signal: AbortSignal) => Promise<void>;
  /** The shards need not wait any longer. */
  readonly searched: () => void;
  readonly sweep: () => Promise<unknown>;
  readonly broken: (error: unknown) => void;
  readonly works: () => void;
}

/** In the place of a shard's place: the table was searched. */
const SEARCHED = "searched";
const SEARCH_AGAIN_MS = 1_000;

/** Relays what is due, again and again. The first owner ever searches the table before. */
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
      // The shards wait for the search.
      await clock.sleep(this.#isSearched ? everyMs : Math.min(SEARCH_AGAIN_MS, everyMs), signal);
    }
  }

  async #round(signal: AbortSignal): Promise<void> {
    const { lease, search, searched, sweep } = this.#options;
    if (!this.#isSearched) {
      await search(signal);
      if (signal.aborted) return;
      this.#isSearched = await lease.save({ place: SEARCHED });
      if (!this.#isSearched) return;
      searched();
    }
    await sweep();
  }
}
