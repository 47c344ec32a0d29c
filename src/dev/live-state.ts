import { randomUUID } from "node:crypto";
import { reasonOf } from "../core/errors.ts";
import type { Arrival, ArrivalBook } from "./arrival-book.ts";
import type { DemoDestination, DestinationFaults } from "./demo-destination.ts";
import type { Entry, Journal } from "./journal.ts";
import type { RelayState, RelaySupervisor } from "./relay-supervisor.ts";
import type { ShopFigure, ShopFigures } from "./shop-figures.ts";
import type { Shoppers } from "./shoppers.ts";

/** The data of the demo panel. It exists, empty, before anything else has started. */
export interface LiveParts {
  readonly journal: Journal;
  readonly book: ArrivalBook;
  readonly destination: DemoDestination;
  /** The user's own broker; null without one. */
  readonly broker: string | null;
  /** Progress of the guided first minute, as far as the switches know it. */
  readonly tour: { isBroken: boolean; isFixed: boolean };
  /** Null until they have started. */
  shoppers: Shoppers | null;
  figures: ShopFigures | null;
  /** The first relay always runs, the second while it is switched on. */
  relays: { readonly first: RelaySupervisor; readonly second: RelaySupervisor } | null;
  /** The part that is starting; null once everything has started. */
  startingWith: string | null;
}

/** Current rates and counts. */
interface Flow {
  readonly inPerS: number;
  readonly outPerS: number;
  readonly waiting: number;
  readonly lagMs: number;
  readonly delivered: number;
}

/** The complete state that is sent to the console. */
export interface Snapshot {
  /** Changes with each start, so that the console drops what it remembered of an earlier demo. */
  readonly runId: string;
  readonly nowMs: number;
  readonly startingWith: string | null;
  readonly databaseError: string | null;
  readonly isDatabaseStopped: boolean;
  readonly relays: readonly (RelayState & { readonly lanes: number })[];
  readonly traffic: { readonly isOn: boolean };
  readonly destination: {
    readonly broker: string | null;
    /** Why the circuit is open; null while it is closed. */
    readonly circuit: string | null;
    readonly faults: DestinationFaults;
    readonly arrived: number;
    readonly repeated: number;
    readonly outOfOrder: number;
    readonly lost: number;
    readonly discarded: number;
    readonly outstanding: number;
  };
  /** Null before the first poll. */
  readonly flow: Flow | null;
  readonly tour: {
    readonly isFlowing: boolean;
    readonly isBroken: boolean;
    readonly isFixed: boolean;
    readonly plansDone: number;
    readonly deadLetters: number;
  };
  readonly messages: readonly Arrival[];
  readonly journal: readonly Entry[];
}

type Watcher = (state: Snapshot) => void;
type Unwatch = () => void;

const TICK_MS = 1_000;
const FIND_LOST_EVERY = 3;
/** This many arrivals complete the first step of the tour. */
const FLOW_MIN = 20;

/** Polls the state once a second and publishes it to the watchers. */
export class LiveState {
  readonly #parts: LiveParts;
  readonly #isDatabaseStopped: () => boolean;
  readonly #runId = randomUUID();
  readonly #rates = new Rates();
  readonly #watchers = new Set<Watcher>();
  #figure: ShopFigure | null = null;
  #flow: Flow | null = null;
  #databaseError: string | null = null;
  #timer: NodeJS.Timeout | null = null;
  #looking: Promise<void> | null = null;
  #looks = 0;

  constructor(parts: LiveParts, isDatabaseStopped: () => boolean) {
    this.#parts = parts;
    this.#isDatabaseStopped = isDatabaseStopped;
  }

  start(): void {
    this.#timer ??= setInterval(() => void this.tick(), TICK_MS);
  }

  async stop(): Promise<void> {
    if (this.#timer !== null) clearInterval(this.#timer);
    await this.#looking;
  }

  /** Subscribes to the state. Returns the function that unsubscribes. */
  watch(watcher: Watcher): Unwatch {
    this.#watchers.add(watcher);
    return () => void this.#watchers.delete(watcher);
  }

  /** Polls, unless a poll is still running, and publishes what is known in any case. */
  async tick(): Promise<void> {
    this.#looking ??= this.#look().finally(() => {
      this.#looking = null;
    });
    await Promise.race([this.#looking, new Promise((resolve) => setTimeout(resolve, TICK_MS / 2))]);
    this.publish();
  }

  /** Publishes the state now, for example after a switch was changed. */
  publish(): void {
    const state = this.snapshot();
    for (const watcher of this.#watchers) watcher(state);
  }

  snapshot(): Snapshot {
    const { book, journal, relays, shoppers, startingWith, tour } = this.#parts;
    const shown = relays === null ? [] : [relays.first.state, relays.second.state];
    const figure = this.#figure;
    return {
      runId: this.#runId,
      nowMs: Date.now(),
      startingWith,
      databaseError: this.#databaseError,
      isDatabaseStopped: this.#isDatabaseStopped(),
      relays: shown.map((relay) => ({ ...relay, lanes: figure?.lanes.get(relay.name) ?? 0 })),
      traffic: { isOn: shoppers?.isShopping ?? false },
      destination: this.#destination(),
      flow: this.#flow,
      tour: {
        isFlowing: book.total >= FLOW_MIN,
        ...tour,
        plansDone: figure?.plansDone ?? 0,
        deadLetters: figure?.deadLetters ?? 0,
      },
      messages: book.latest,
      journal: journal.entries,
    };
  }

  #destination(): Snapshot["destination"] {
    const { book, broker, destination, journal } = this.#parts;
    return {
      broker,
      circuit: journal.circuit,
      faults: destination.faults,
      arrived: book.total,
      repeated: book.repeated,
      outOfOrder: book.outOfOrder,
      lost: book.lost,
      discarded: book.discarded,
      outstanding: book.outstanding,
    };
  }

  async #look(): Promise<void> {
    const { book, broker, figures, shoppers } = this.#parts;
    if (figures === null || shoppers === null) return;
    try {
      this.#note(await figures.read(), shoppers.written);
      this.#looks += 1;
      // The demo cannot see what arrives at the user's own broker.
      if (broker === null && this.#looks % FIND_LOST_EVERY === 0) {
        await book.findLost((line, ids) => figures.lookUp(line, ids));
      }
      this.#databaseError = null;
    } catch (error) {
      this.#databaseError = reasonOf(error);
    }
  }

  #note(figure: ShopFigure, written: number): void {
    const atMs = Date.now();
    const { delivered, oldestMs, waiting } = figure;
    this.#figure = figure;
    this.#flow = {
      inPerS: this.#rates.perSecond("in", written, atMs),
      outPerS: this.#rates.perSecond("out", delivered, atMs),
      waiting,
      lagMs: oldestMs,
      delivered,
    };
  }
}

/** Rates of growing totals between two samples. */
class Rates {
  readonly #last = new Map<string, { readonly total: number; readonly atMs: number }>();

  /** Per second; 0 for the first sample, and if the total fell because its counter was reset. */
  perSecond(name: string, total: number, nowMs: number): number {
    const last = this.#last.get(name);
    this.#last.set(name, { total, atMs: nowMs });
    if (last === undefined || nowMs <= last.atMs) return 0;
    return Math.max(0, ((total - last.total) * 1_000) / (nowMs - last.atMs));
  }
}
