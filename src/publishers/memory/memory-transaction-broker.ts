import { RelayError } from "../../core/errors.ts";
import type { CommittedBatch, LaneAddress } from "../../ports/transactions.ts";

interface TransactionBrokerOptions {
  /** Batches of a lane that the ledger keeps. */
  readonly ringSize?: number;
  /** A transaction that is open for longer is aborted, and whoever opened it is fenced. */
  readonly timeoutMs?: number;
  readonly nowMs?: () => number;
}

/** Gets what became visible, in its order, whenever a transaction is committed, and the notes that came with it. */
type Reader<Content> = (records: readonly Content[], notes: readonly CommittedBatch[], lane: LaneAddress) => void;

interface OpenTransaction<Content> {
  readonly serial: number;
  readonly sinceMs: number;
  readonly records: Content[];
  readonly notes: CommittedBatch[];
  /** To be committed, whatever happens; only nobody can see it yet. */
  isDecided: boolean;
}

interface TransactionLane<Content> {
  /** Raised by every fence. Requests that bear a lower one have no effect. */
  epoch: number;
  open: OpenTransaction<Content> | null;
  /** How the last one ended: who asks for the same end twice is not wrong. */
  ended: "commit" | "abort" | null;
}

const RING_SIZE = 64;
const TIMEOUT_MS = 60_000;

/**
 * What a broker keeps of transactions, as a state machine: each method is one request in the moment in which it takes
 * effect. Per lane there is an epoch and at most one open transaction, and a ledger with one note per transaction.
 *
 * As in a real broker, a request tells its epoch and nothing else: whatever transaction of this epoch is open when the
 * request arrives is the one that it writes into, commits or aborts.
 */
export class TransactionBroker<Content> {
  readonly ringSize: number;
  readonly #timeoutMs: number;
  readonly #nowMs: () => number;
  readonly #readers: Reader<Content>[] = [];
  readonly #lanes = new Map<string, TransactionLane<Content>>();
  /** By slot and place in the ring. */
  readonly #ledgers = new Map<string, Map<bigint, CommittedBatch>>();
  #slots = 0;
  #serial = 0;

  constructor(options: TransactionBrokerOptions = {}) {
    this.ringSize = options.ringSize ?? RING_SIZE;
    this.#timeoutMs = options.timeoutMs ?? TIMEOUT_MS;
    this.#nowMs = options.nowMs ?? (() => performance.now());
  }

  onVisible(reader: Reader<Content>): void {
    this.#readers.push(reader);
  }

  /** Makes room in the ledger for so many slots. */
  prepare(slots: number): void {
    this.#slots = Math.max(this.#slots, slots);
  }

  /** Fences: returns the epoch of the new user. What was open is aborted, what was decided is committed. */
  begin(address: LaneAddress): number {
    if (address.slot >= this.#slots) {
      throw new RelayError("LEDGER_UNFIT", `The ledger has ${this.#slots} slots and none for slot ${address.slot}.`);
    }
    const lane = this.#laneOf(address);
    this.complete(address);
    this.#abort(lane);
    return this.#raise(lane);
  }

  /** The committed batches above `after` that the ring still has, in rising order; where there are none, the last one. */
  ledger(address: LaneAddress, after: bigint): readonly CommittedBatch[] {
    const notes = [...this.#ledgerOf(address).values()].sort((left, right) => (left.batch < right.batch ? -1 : 1));
    const above = notes.filter(({ batch }) => batch > after);
    return above.length > 0 ? above : notes.slice(-1);
  }

  /** Writes into the open transaction, or into a new one. Returns a number that tells it from all others. */
  write(address: LaneAddress, epoch: number, records: readonly Content[], note: CommittedBatch | null): number {
    const lane = this.#laneOf(address, epoch);
    this.complete(address);
    lane.open ??= { serial: this.#serial++, sinceMs: this.#nowMs(), records: [], notes: [], isDecided: false };
    lane.open.records.push(...records);
    if (note !== null) lane.open.notes.push(note);
    return lane.open.serial;
  }

  /** From here on it is committed for good, though it becomes visible only when it is completed. */
  decide(address: LaneAddress, epoch: number): void {
    const lane = this.#laneOf(address, epoch);
    if (lane.open !== null) lane.open.isDecided = true;
    else if (lane.ended !== "commit") throw wrongState(address, "commit");
  }

  /** Makes visible what was decided. Everything that follows in the lane waits for it. */
  complete(address: LaneAddress): void {
    const lane = this.#laneOf(address);
    if (lane.open === null || !lane.open.isDecided) return;
    const { records, notes } = lane.open;
    lane.open = null;
    lane.ended = "commit";
    const ledger = this.#ledgerOf(address);
    for (const note of notes) ledger.set(note.batch % BigInt(this.ringSize), note);
    for (const read of this.#readers) read(records, notes, address);
  }

  abort(address: LaneAddress, epoch: number): void {
    const lane = this.#laneOf(address, epoch);
    if (lane.open?.isDecided || (lane.open === null && lane.ended === "commit")) throw wrongState(address, "abort");
    this.#abort(lane);
  }

  /** As if its time were over: the open transaction is aborted, and whoever opened it is fenced. */
  expire(address: LaneAddress): void {
    const lane = this.#laneOf(address);
    if (lane.open === null || lane.open.isDecided) return;
    this.#abort(lane);
    this.#raise(lane);
  }

  /** The transaction that is open in this lane now; null when there is none that anything could be written into. */
  openIn(address: LaneAddress): number | null {
    const { open } = this.#laneOf(address);
    return open === null || open.isDecided ? null : open.serial;
  }

  #abort(lane: TransactionLane<Content>): void {
    if (lane.open !== null) lane.ended = "abort";
    lane.open = null;
  }

  #raise(lane: TransactionLane<Content>): number {
    lane.epoch += 1;
    lane.ended = null;
    return lane.epoch;
  }

  #laneOf(address: LaneAddress, epoch?: number): TransactionLane<Content> {
    const name = `${address.database} ${address.pipeline} ${address.lane}`;
    const lane = this.#lanes.get(name) ?? { epoch: 0, open: null, ended: null };
    this.#lanes.set(name, lane);
    const isOverdue = lane.open !== null && this.#nowMs() - lane.open.sinceMs > this.#timeoutMs;
    if (isOverdue && !lane.open?.isDecided) {
      this.#abort(lane);
      this.#raise(lane);
    }
    if (epoch !== undefined && epoch !== lane.epoch) {
      const who = `the user of epoch ${epoch} of lane ${address.lane} of ${address.pipeline}`;
      throw new RelayError("FENCED", `The destination refuses ${who}: it is at epoch ${lane.epoch}.`);
    }
    return lane;
  }

  #ledgerOf({ database, slot }: LaneAddress): Map<bigint, CommittedBatch> {
    const name = `${database} ${slot}`;
    const ledger = this.#ledgers.get(name) ?? new Map<bigint, CommittedBatch>();
    this.#ledgers.set(name, ledger);
    return ledger;
  }
}

function wrongState({ lane, pipeline }: LaneAddress, wanted: "commit" | "abort"): RelayError {
  return new RelayError("PUBLISH_FAILED", `Lane ${lane} of ${pipeline} has no transaction to ${wanted}.`);
}
