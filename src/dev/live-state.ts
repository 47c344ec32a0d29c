import { reasonOf } from "../core/errors.ts";
import type { DeadLetter } from "../operations/dead-letter-list.ts";
import type { Arrival, ArrivalBook } from "./arrival-book.ts";
import type { DemoDestination, DestinationFaults } from "./demo-destination.ts";
import type { Entry, Journal } from "./journal.ts";
import { Rates } from "./rates.ts";
import type { RelayState, RelaySupervisor } from "./relay-supervisor.ts";
import type { Retrying, ShopFigures, SourceFigures } from "./shop-figures.ts";
import type { Shoppers } from "./shoppers.ts";

/** Everything that the page is made from. It exists, empty, before anything else has started. */
export interface LiveParts {
  readonly journal: Journal;
  readonly book: ArrivalBook;
  readonly destination: DemoDestination;
  /** The user's broker as the page names it; null without one. */
  readonly broker: string | null;
  /** Null until they have started. */
  shoppers: Shoppers | null;
  figures: ShopFigures | null;
  /** The first runs always, the second when it is switched on. */
  relays: { readonly first: RelaySupervisor; readonly second: RelaySupervisor } | null;
  /** What is being started; null when all is. */
  startingWith: string | null;
}

interface ShownSource extends SourceFigures {
  readonly inPerS: number;
  readonly outPerS: number;
}

interface Sample {
  readonly atMs: number;
  readonly in: number;
  readonly out: number;
  readonly waiting: number;
  readonly lagMs: number;
}

/** What the page gets, whole each time. */
export interface Snapshot {
  readonly nowMs: number;
  readonly startingWith: string | null;
  readonly databaseTrouble: string | null;
  readonly relays: readonly (RelayState & { readonly lanes: number })[];
  readonly traffic: { readonly isOn: boolean };
  readonly destination: {
    readonly broker: string | null;
    /** Why the relay sends nothing; null while it does. */
    readonly circuit: string | null;
    readonly faults: DestinationFaults;
    readonly arrived: number;
    readonly repeated: number;
    readonly outOfOrder: number;
    readonly lost: number;
    readonly outstanding: number;
    readonly byType: Readonly<Record<string, number>>;
  };
  readonly sources: readonly ShownSource[];
  readonly samples: readonly Sample[];
  readonly messages: readonly Arrival[];
  readonly deadLetters: readonly DeadLetter[];
  readonly retrying: readonly Retrying[];
  readonly journal: readonly Entry[];
}

type Watcher = (state: Snapshot) => void;
type Unwatch = () => void;

const TICK_MS = 1_000;
const SAMPLES_MAX = 120;
const FIND_LOST_EVERY = 3;

/** Looks at everything once a second and tells whoever watches. */
export class LiveState {
  readonly #parts: LiveParts;
  readonly #rates = new Rates();
  readonly #watchers = new Set<Watcher>();
  readonly #samples: Sample[] = [];
  #sources: readonly ShownSource[] = [];
  #deadLetters: readonly DeadLetter[] = [];
  #retrying: readonly Retrying[] = [];
  #lanes: ReadonlyMap<string, number> = new Map();
  #databaseTrouble: string | null = null;
  #timer: NodeJS.Timeout | null = null;
  #looking: Promise<void> | null = null;
  #looks = 0;

  constructor(parts: LiveParts) {
    this.#parts = parts;
  }

  start(): void {
    this.#timer ??= setInterval(() => void this.tick(), TICK_MS);
  }

  async stop(): Promise<void> {
    if (this.#timer !== null) clearInterval(this.#timer);
    await this.#looking;
  }

  /** Returns the function that ends the watching. */
  watch(watcher: Watcher): Unwatch {
    this.#watchers.add(watcher);
    return () => void this.#watchers.delete(watcher);
  }

  /** Looks, unless the look before still waits for its answers, and tells what is known either way. */
  async tick(): Promise<void> {
    this.#looking ??= this.#look().finally(() => {
      this.#looking = null;
    });
    await Promise.race([this.#looking, new Promise((resolve) => setTimeout(resolve, TICK_MS / 2))]);
    const state = this.snapshot();
    for (const watcher of this.#watchers) watcher(state);
  }

  snapshot(): Snapshot {
    const { book, broker, destination, journal, relays, shoppers, startingWith } = this.#parts;
    const shown = relays === null ? [] : [relays.first.state, relays.second.state];
    return {
      nowMs: Date.now(),
      startingWith,
      databaseTrouble: this.#databaseTrouble,
      relays: shown.map((relay) => ({ ...relay, lanes: this.#lanes.get(relay.name) ?? 0 })),
      traffic: { isOn: shoppers?.isShopping ?? false },
      destination: {
        broker,
        circuit: journal.circuit,
        faults: destination.faults,
        arrived: book.total,
        repeated: book.repeated,
        outOfOrder: book.outOfOrder,
        lost: book.lost,
        outstanding: book.outstanding,
        byType: Object.fromEntries(book.byType),
      },
      sources: this.#sources,
      samples: this.#samples,
      messages: book.latest,
      deadLetters: this.#deadLetters,
      retrying: this.#retrying,
      journal: journal.entries,
    };
  }

  async #look(): Promise<void> {
    const { book, broker, figures, shoppers } = this.#parts;
    if (figures === null || shoppers === null) return;
    try {
      const [sources, dead, retrying, lanes] = await Promise.all([
        figures.sources(),
        figures.deadLetters(),
        figures.retrying(),
        figures.lanes(),
      ]);
      this.#lanes = lanes;
      this.#deadLetters = dead;
      this.#retrying = retrying;
      this.#note(sources, shoppers.written);
      this.#looks += 1;
      // A broker of the user's is not watched: nobody here knows what arrives there.
      if (broker === null && this.#looks % FIND_LOST_EVERY === 0) {
        await book.findLost((source, ids) => figures.stillThere(source, ids));
      }
      this.#databaseTrouble = null;
    } catch (error) {
      this.#databaseTrouble = reasonOf(error);
    }
  }

  #note(figures: readonly SourceFigures[], written: ReadonlyMap<string, number>): void {
    const atMs = Date.now();
    this.#sources = figures.map((source) => ({
      ...source,
      inPerS: this.#rates.perSecond(`in ${source.source}`, written.get(source.source) ?? 0, atMs),
      outPerS: this.#rates.perSecond(`out ${source.source}`, source.delivered, atMs),
    }));
    const sum = (pick: (source: ShownSource) => number) =>
      this.#sources.reduce((total, source) => total + pick(source), 0);
    this.#samples.push({
      atMs,
      in: sum(({ inPerS }) => inPerS),
      out: sum(({ outPerS }) => outPerS),
      waiting: sum(({ waiting }) => waiting),
      lagMs: Math.max(0, ...this.#sources.map(({ oldestMs }) => oldestMs)),
    });
    if (this.#samples.length > SAMPLES_MAX) this.#samples.shift();
  }
}
