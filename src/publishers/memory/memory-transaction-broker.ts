import { RelayError } from "../../core/errors.ts";
import type { CommittedBatch, LaneAddress } from "../../ports/transactions.ts";

export interface TransactionBrokerOptions {
  /** How many batches per lane the ledger keeps. */
  readonly ringSize?: number;
  /** A transaction that is open for longer is aborted, and its owner is fenced. */
  readonly timeoutMs?: number;
  readonly nowMs?: () => number;
}

/** Called when a transaction becomes visible, with its records in order and its notes. */
/** Gets each committed transaction: its records, its notes and its lane. */
export type BrokerReader<Content> = (
  records: readonly Content[],
  notes: readonly CommittedBatch[],
  lane: LaneAddress,
) => void;

interface OpenTransaction<Content> {
  readonly serial: number;
  readonly sinceMs: number;
  readonly records: Content[];
  readonly notes: CommittedBatch[];
  /** The commit is decided, but the records are not visible yet. */
  isDecided: boolean;
}

interface TransactionLane<Content> {
  /** Raised by every fence. Requests with a lower epoch have no effect. */
  epoch: number;
  open: OpenTransaction<Content> | null;
  /** How the last transaction ended: asking for the same end twice is allowed. */
  ended: "commit" | "abort" | null;
}

const RING_SIZE = 64;
const TIMEOUT_MS = 60_000;

/**
 * The transactional state of a broker as a state machine: each method is one request at the moment it takes effect.
 * Each lane has an epoch, at most one open transaction, and a ledger with one note per transaction.
 *
 * As in a real broker, a request carries only its epoch: it affects whichever transaction of this epoch is open when it
 * arrives.
 */
export class TransactionBroker<Content> {
  readonly ringSize: number;
  readonly #timeoutMs: number;
  readonly #nowMs: () => number;
  readonly #readers: BrokerReader<Content>[] = [];
  readonly #lanes = new Map<string, TransactionLane<Content>>();
  /** Notes by slot and ring index. */
  readonly #ledgers = new Map<string, Map<bigint, CommittedBatch>>();
  #slots = 0;
  #serial = 0;

  constructor(options: TransactionBrokerOptions = {}) {
    this.ringSize = options.ringSize ?? RING_SIZE;
    this.#timeoutMs = options.timeoutMs ?? TIMEOUT_MS;
    this.#nowMs = options.nowMs ?? (() => performance.now());
  }

  onVisible(reader: BrokerReader<Content>): void {
    this.#readers.push(reader);
  }

  /** Extends the ledger to this many slots. */
  prepare(slots: number): void {
    this.#slots = Math.max(this.#slots, slots);
  }

  /** Fences the lane and returns the new owner's epoch. An open transaction is aborted, a decided one is completed. */
  begin(address: LaneAddress): number {
    if (address.slot >= this.#slots) {
      throw new RelayError("LEDGER_UNFIT", `The ledger has ${this.#slots} slots and none for slot ${address.slot}.`);
    }
    const lane = this.#laneOf(address);
    this.complete(address);
    this.#abort(lane);
    return this.#raise(lane);
  }

  /** The committed batches above `after` that the ring still has, in rising order; if there are none, the last one. */
  ledger(address: LaneAddress, after: bigint): readonly CommittedBatch[] {
    const notes = [...this.#ledgerOf(address).values()].sort((left, right) => (left.batch < right.batch ? -1 : 1));
    const above = notes.filter(({ batch }) => batch > after);
    return above.length > 0 ? above : notes.slice(-1);
  }

  /** Writes into the open transaction, or begins one. Returns the transaction's serial number. */
  write(address: LaneAddress, epoch: number, records: readonly Content[], note: CommittedBatch | null): number {
    const lane = this.#laneOf(address, epoch);
    this.complete(address);
    lane.open ??= { serial: this.#serial++, sinceMs: this.#nowMs(), records: [], notes: [], isDecided: false };
    lane.open.records.push(...records);
    if (note !== null) lane.open.notes.push(note);
    return lane.open.serial;
  }

  /** Decides the commit. The records become visible only with `complete`. */
  decide(address: LaneAddress, epoch: number): void {
    const lane = this.#laneOf(address, epoch);
    if (lane.open !== null) lane.open.isDecided = true;
    else if (lane.ended !== "commit") throw wrongState(address, "commit");
  }

  /** Makes a decided transaction visible. Later requests of the lane wait for it. */
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

  /** Simulates the transaction timeout: aborts the open transaction and fences its owner. */
  expire(address: LaneAddress): void {
    const lane = this.#laneOf(address);
    if (lane.open === null || lane.open.isDecided) return;
    this.#abort(lane);
    this.#raise(lane);
  }

  /** The serial number of the lane's open transaction; null if none accepts writes. */
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
      const who = `the owner with epoch ${epoch} of lane ${address.lane} of ${address.pipeline}`;
      throw new RelayError("FENCED", `The destination refuses ${who}: the current epoch is ${lane.epoch}.`);
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
