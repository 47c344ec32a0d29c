import type { WireMessage } from "./destination-wire.ts";

/** A message as the page shows it. */
export interface Arrival {
  readonly id: string;
  readonly type: string;
  readonly destination: string;
  readonly source: string | null;
  readonly key: string | null;
  readonly atMs: number;
  /** From the writing of the event to its arrival; null when the row does not say when it was written. */
  readonly latencyMs: number | null;
  readonly isRepeated: boolean;
}

/** What is known at their source of events that have not arrived. */
export interface Whereabouts {
  /** Waiting, failed ones included. */
  readonly waiting: ReadonlySet<string>;
  readonly discarded: ReadonlySet<string>;
}

/** An event that was written and has not arrived. */
interface Awaited {
  readonly source: string;
  readonly id: string;
  readonly writtenMs: number;
}

const LATEST_MAX = 12;
/** Repetitions come within seconds; these are minutes of the heaviest traffic. */
const IDS_MAX = 200_000;
/** What was written so long ago and is neither here nor waiting in its table is looked at. */
const SUSPECT_MS = 3_000;
const SUSPECTS_MAX = 500;

/**
 * Counts at the destination what the relay promises: nothing is lost, nothing arrives out of order within its key, and
 * how much arrives twice. It believes nobody: it knows what was written and sees what arrives.
 */
export class ArrivalBook {
  total = 0;
  repeated = 0;
  outOfOrder = 0;
  lost = 0;
  /** Given up by a person: they will never come, and that is known. */
  discarded = 0;
  readonly latest: Arrival[] = [];
  readonly #ids = new Set<string>();
  readonly #awaited = new Map<string, Awaited>();
  readonly #lastNumber = new Map<string, number>();

  /** Written and not here yet. */
  get outstanding(): number {
    return this.#awaited.size;
  }

  /** The write was committed. It may have arrived before its writer heard of that. */
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
    // Order is promised for first arrivals: a repetition is by nature later than what followed it.
    this.#checkOrder(`${source} ${key}`, payload);
  }

  /**
   * Looks for what was marked as delivered and never came. `ask` tells which ids of a source still wait there; an event
   * is marked only after its arrival, so whatever is gone from there must be here.
   */
  async findLost(ask: (source: string, ids: readonly string[]) => Promise<Whereabouts>): Promise<void> {
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

  /** Looked at again when all others have been. */
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
