import type { EventHeaders } from "../../core/event.ts";
import type { Hold } from "../../core/hold.ts";
import type { EventState } from "../../core/state.ts";
import type { Pause, TypeFilter } from "../../ports/queue-store.ts";

/**
 * An event as stored. All values in the tables are immutable: a change puts a new object, so a snapshot is a list of
 * references.
 */
export interface MemoryEventRow {
  /** The order of writing. Commits can happen in another order. */
  readonly sequence: number;
  readonly id: string;
  readonly type: string;
  readonly key: string | null;
  readonly payload: Buffer;
  readonly headers: EventHeaders;
  readonly correlationId: string | null;
  readonly createdAt: string | null;
  /** Why this row is not a valid event, for tests of that path. */
  readonly unreadable: string | null;
  readonly state: EventState;
  /** Failures so far; counted here with durable claims, else in a hold. */
  readonly attempts: number;
  readonly availableAtMs: number;
  readonly lockedBy: string | null;
  readonly lockedAtMs: number | null;
  /** The number of the current durable claim. */
  readonly claimNumber: number | null;
  /** The number of the first claim that was released. Such rows come before all others, in this order. */
  readonly formerClaim: number | null;
  readonly deliveredAtMs: number | null;
}

/** One lane of a pipeline: its owner, its fence and its progress. */
export interface MemoryLaneRow {
  readonly lane: number;
  readonly owner: string | null;
  readonly epoch: bigint;
  readonly settledBatch: bigint;
  readonly ledgeredBatch: bigint;
  readonly crashes: number;
  /** Claimed events that were sent or were about to be sent. */
  readonly sending: readonly string[];
}

/** One failed attempt. */
export interface MemoryAttemptError {
  readonly attempt: number;
  readonly reason: string;
  readonly atMs: number;
}

/** A hold as stored, with the error of every attempt. */
export interface MemoryHoldRow extends Omit<Hold, "dueInMs"> {
  readonly dueAtMs: number | null;
  readonly errors: readonly MemoryAttemptError[];
}

/** A living instance and its lease. */
export interface MemoryInstanceRow {
  readonly id: string;
  readonly name: string;
  readonly leaseMs: number;
  readonly aliveUntilMs: number;
  readonly pipelines: readonly string[];
  /** The types it reads, by pipeline; undefined when the instance did not report them. */
  readonly takes: Readonly<Record<string, TypeFilter>> | undefined;
}

/** The copy of a dead event, with the error of every attempt. */
export interface MemoryDeadLetter {
  readonly pipeline: string;
  readonly event: MemoryEventRow;
  readonly attempts: number;
  readonly parks: boolean;
  readonly errors: readonly MemoryAttemptError[];
  readonly diedAtMs: number;
}

/** Lanes and holds of one pipeline. */
export interface MemoryPipelineTables {
  readonly name: string;
  readonly types: TypeFilter;
  readonly lanes: Map<number, MemoryLaneRow>;
  readonly holds: Map<string, MemoryHoldRow>;
}

type Undo = () => void;

/**
 * Maps with transactions. A change that throws leaves no trace. A database that keeps its last commits can also undo
 * them, like a promoted standby that never received them.
 */
export class MemoryTables {
  /** PENDING and DELIVERING. */
  readonly open = new Map<string, MemoryEventRow>();
  /** DELIVERED and DEAD. */
  readonly closed = new Map<string, MemoryEventRow>();
  readonly pipelines = new Map<string, MemoryPipelineTables>();
  readonly instances = new Map<string, MemoryInstanceRow>();
  /** By pipeline. */
  readonly pauses = new Map<string, Pause>();
  /** Events a second, by pipeline. */
  readonly limits = new Map<string, number>();
  readonly deadLetters = new Map<string, MemoryDeadLetter>();
  readonly #commitsKept: number;
  readonly #commits: Undo[][] = [];
  #transaction: Undo[] | null = null;
  #failovers = 0;

  constructor(commitsKept: number) {
    this.#commitsKept = commitsKept;
  }

  /** Identifies the line of the database's history. Every failover begins a new one, even if it loses nothing. */
  get timeline(): string {
    return String(this.#failovers);
  }

  /** Runs the change atomically; a nested call joins the outer transaction. */
  commit<Result>(change: () => Result): Result {
    if (this.#transaction !== null) return change();
    const undos: Undo[] = [];
    this.#transaction = undos;
    try {
      const result = change();
      if (this.#commitsKept > 0 && undos.length > 0) this.#keep(undos);
      return result;
    } catch (error) {
      undo(undos);
      throw error;
    } finally {
      this.#transaction = null;
    }
  }

  /** Fails over: undoes the last commits and begins a new timeline. Returns how many commits it undid. */
  forget(commits: number): number {
    this.#failovers += 1;
    const forgotten = this.#commits.splice(Math.max(0, this.#commits.length - commits)).reverse();
    for (const undos of forgotten) undo(undos);
    return forgotten.length;
  }

  put<Key, Value>(table: Map<Key, Value>, key: Key, value: Value): void {
    this.#remember(table, key);
    table.set(key, value);
  }

  delete<Key, Value>(table: Map<Key, Value>, key: Key): boolean {
    if (!table.has(key)) return false;
    this.#remember(table, key);
    return table.delete(key);
  }

  #remember<Key, Value>(table: Map<Key, Value>, key: Key): void {
    const before = table.get(key);
    this.#transaction?.push(before === undefined ? () => table.delete(key) : () => table.set(key, before));
  }

  #keep(undos: Undo[]): void {
    this.#commits.push(undos);
    if (this.#commits.length > this.#commitsKept) this.#commits.shift();
  }
}

function undo(undos: Undo[]): void {
  for (const step of undos.reverse()) step();
}
