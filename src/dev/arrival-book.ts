import type { WireMessage } from "./destination-wire.ts";

/** A message as the console shows it. */
export interface Arrival {
  readonly id: string;
  readonly type: string;
  readonly destination: string;
  readonly source: string | null;
  readonly key: string | null;
  readonly atMs: number;
  /** From the write of the event to its arrival; null if the row has no creation time. */
  readonly latencyMs: number | null;
  readonly isRepeated: boolean;
}

/** The state in their source of events that have not arrived. */
export interface SourceLookup {
  /** Ids of pending and failed events. */
  readonly waiting: ReadonlySet<string>;
  readonly discarded: ReadonlySet<string>;
}

/** A written event that has not arrived. */
interface Awaited {
  readonly source: string;
  readonly id: string;
  readonly writtenMs: number;
}

const LATEST_MAX = 12;
/** Duplicates arrive within seconds; this many ids cover minutes of the heaviest traffic. */
const IDS_MAX = 200_000;
/** Events that have not arrived after this time are looked up in their table. */
const SUSPECT_MS = 3_000;
const SUSPECTS_MAX = 500;

/**
 * Checks the relay's guarantees at the destination: counts lost, out-of-order and duplicate events. It compares written
 * events with arrivals and does not rely on the relay.
 */
export class ArrivalBook {
  total = 0;
  repeated = 0;
  outOfOrder = 0;
  lost = 0;
  /** Discarded by an operator: they never arrive and are not lost. */
  discarded = 0;
  readonly latest: Arrival[] = [];
  readonly #ids = new Set<string>();
  readonly #awaited = new Map<string, Awaited>();
  readonly #lastNumber = new Map<string, number>();

  /** Number of written events that have not arrived. */
  get outstanding(): number {
    return this.#awaited.size;
  }

  /** Records a committed write. The event may arrive before its writer learns of the commit. */
  written(source: string, id: string): void {
    const name = `${source} ${id}`;
    if (!this.#ids.has(name)) this.#awaited.set(name, { source, id, writtenMs: Date.now() });
  }

  arrived(message: WireMessage): void {
    const { destination, source, id, type, key, createdAt, payload } = message;
    const name = `${source} ${id}`;
    const isRepeated = this.#ids.has(name);
    const atMs = Date.now();
    const latencyMs = createdAt === null ? null : Math.max(0, atMs - Date.parse(createdAt));
    this.latest.unshift({ id, type, destination, source, key, atMs, latencyMs, isRepeated });
    if (this.latest.length > LATEST_MAX) this.latest.pop();
    this.total += 1;
    if (isRepeated) {
      this.repeated += 1;
      return;
    }
    this.#remember(name);
    this.#awaited.delete(name);
    // Order is guaranteed for first arrivals only: a duplicate may arrive after later events.
    this.#checkOrder(`${source} ${key}`, payload);
  }

  /**
   * Finds events that were marked as delivered but never arrived. `ask` returns which ids are still in their source. The
   * relay marks an event only after its arrival, so an event that is no longer pending must have arrived.
   */
  async findLost(ask: (source: string, ids: readonly string[]) => Promise<SourceLookup>): Promise<void> {
    const before = Date.now() - SUSPECT_MS;
    const suspects: Awaited[] = [];
    for (const awaited of this.#awaited.values()) {
      if (awaited.writtenMs > before || suspects.length === SUSPECTS_MAX) break;
      suspects.push(awaited);
    }
    for (const [source, ofSource] of Map.groupBy(suspects, (suspect) => suspect.source)) {
      const ids = ofSource.map(({ id }) => id);
      const { discarded, waiting } = await ask(source, ids);
      for (const { id, source: table } of ofSource) {
        const name = `${table} ${id}`;
        if (waiting.has(id)) this.#moveBack(name);
        else if (!this.#awaited.delete(name)) continue;
        else if (discarded.has(id)) this.discarded += 1;
        else this.lost += 1;
      }
    }
  }

  /** Moves the event to the end, so that all others are looked up first. */
  #moveBack(name: string): void {
    const awaited = this.#awaited.get(name);
    if (awaited === undefined) return;
    this.#awaited.delete(name);
    this.#awaited.set(name, { ...awaited, writtenMs: Date.now() });
  }

  #remember(name: string): void {
    this.#ids.add(name);
    if (this.#ids.size <= IDS_MAX) return;
    const [oldest] = this.#ids;
    if (oldest !== undefined) this.#ids.delete(oldest);
  }

  #checkOrder(line: string, payload: string): void {
    const number = Number(/"number": ?(\d+)/.exec(payload)?.[1] ?? Number.NaN);
    if (Number.isNaN(number)) return;
    if (number < (this.#lastNumber.get(line) ?? 0)) this.outOfOrder += 1;
    this.#lastNumber.set(line, Math.max(number, this.#lastNumber.get(line) ?? 0));
  }
}
