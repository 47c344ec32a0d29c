import { type Clock, systemClock } from "../../core/clock.ts";
import type { EventHeaders } from "../../core/event.ts";
import type { Pause } from "../../ports/queue-store.ts";
import { type MemoryDeadLetter, type MemoryEventRow, type MemoryHoldRow, MemoryTables } from "./memory-tables.ts";

/** How a `MemoryDatabase` behaves. */
export interface MemoryDatabaseOptions {
  /** Its wall time is the database's time. */
  clock?: Clock;
  /** Claims are written into the row, as in the Open Outbox table. */
  durableClaims?: boolean;
  /** How long a durable claim lasts without being refreshed. */
  claimLeaseMs?: number;
  /** How many of the last commits `forget` can undo, to simulate a failover. */
  commitsKept?: number;
}

/** An event to insert; only id and type are required. */
export interface NewMemoryEvent {
  readonly id: string;
  readonly type: string;
  readonly key?: string | null;
  readonly payload?: Buffer | string;
  readonly headers?: EventHeaders;
  readonly correlationId?: string | null;
  readonly createdAt?: string | null;
  /** Makes the row unreadable as an event; the text is the reason. */
  readonly unreadable?: string;
}

const UNCLAIMED = { lockedBy: null, lockedAtMs: null, claimNumber: null } as const;
const CLAIM_LEASE_MS = 180_000;
let databases = 0;

/**
 * The state that several sources can share, each in the role of one process. Rows keep the order in which they were
 * written. Every method is one transaction and takes effect before it returns.
 */
export class MemoryDatabase {
  readonly databaseId: string;
  readonly tables: MemoryTables;
  readonly durableClaims: boolean;
  readonly claimLeaseMs: number;
  readonly #clock: Clock;
  /** Rows that do not let themselves be marked, as under a trigger that undoes the update. Settable, for tests. */
  refusesMark: (id: string) => boolean = () => false;
  #sequence = 0;
  #claims = 0;

  constructor(options: MemoryDatabaseOptions = {}) {
    databases += 1;
    this.databaseId = `memory-${databases}`;
    this.#clock = options.clock ?? systemClock;
    this.durableClaims = options.durableClaims ?? false;
    this.claimLeaseMs = options.claimLeaseMs ?? CLAIM_LEASE_MS;
    this.tables = new MemoryTables(options.commitsKept ?? 0);
  }

  /** The database's clock. Leases and claims compare only this time, never that of a process. */
  nowMs(): number {
    return Math.floor(this.#clock.wallMs());
  }

  /** Reserves a position in the order of writing for a transaction that commits later. */
  reserve(): number {
    this.#sequence += 1;
    return this.#sequence;
  }

  /** Rises with every claim and never falls, even when commits are forgotten. */
  nextClaim(): number {
    this.#claims += 1;
    return this.#claims;
  }

  /** Inserts one transaction's events. Returns the ids that were new; an existing id changes nothing. */
  insert(events: readonly NewMemoryEvent[], sequences?: readonly number[]): string[] {
    return this.tables.commit(() => {
      const inserted: string[] = [];
      for (const [index, event] of events.entries()) {
        if (this.row(event.id) !== undefined) continue;
        const sequence = sequences?.[index] ?? this.reserve();
        this.tables.put(this.tables.open, event.id, rowOf(event, sequence, this.nowMs()));
        inserted.push(event.id);
      }
      return inserted;
    });
  }

  /** The row in any state. */
  row(id: string): MemoryEventRow | undefined {
    return this.tables.open.get(id) ?? this.tables.closed.get(id);
  }

  /** Deletes the row in any state, as an application or an operator might. */
  delete(id: string): boolean {
    return this.tables.commit(() => {
      this.tables.delete(this.tables.deadLetters, id);
      return this.tables.delete(this.tables.open, id) || this.tables.delete(this.tables.closed, id);
    });
  }

  /** Marks the row as delivered, as another relay might. */
  mark(id: string): boolean {
    const row = this.row(id);
    if (row === undefined || row.state === "DELIVERED") return false;
    this.tables.commit(() => {
      this.tables.delete(this.tables.deadLetters, id);
      this.close(row, "DELIVERED");
    });
    return true;
  }

  /**
   * Makes a delivered or dead event pending again. The lane's owner notices at its next review of holds or its next
   * run.
   */
  replay(id: string): boolean {
    const row = this.tables.closed.get(id);
    if (row === undefined) return false;
    this.tables.commit(() => {
      this.tables.delete(this.tables.closed, id);
      this.tables.delete(this.tables.deadLetters, id);
      this.reopen({ ...row, attempts: 0, availableAtMs: this.nowMs(), deliveredAtMs: null });
    });
    return true;
  }

  /** Pauses a pipeline; null resumes it. */
  pause(pipeline: string, pause: Pause | null): void {
    this.tables.commit(() => {
      if (pause === null) this.tables.delete(this.tables.pauses, pipeline);
      else this.tables.put(this.tables.pauses, pipeline, pause);
    });
  }

  /** Limits a pipeline to this many events per second and instance; null removes the limit. */
  limit(pipeline: string, perSecond: number | null): void {
    this.tables.commit(() => {
      if (perSecond === null) this.tables.delete(this.tables.limits, pipeline);
      else this.tables.put(this.tables.limits, pipeline, perSecond);
    });
  }

  /**
   * Makes the row pending and frees its claim. The first claim's number is kept, so that the row returns to its old
   * position.
   */
  reopen(row: MemoryEventRow): void {
    this.tables.commit(() =>
      this.tables.put(this.tables.open, row.id, {
        ...row,
        ...UNCLAIMED,
        state: "PENDING",
        formerClaim: row.formerClaim ?? row.claimNumber,
      }),
    );
  }

  /** Moves the row to its final state. */
  close(row: MemoryEventRow, state: "DELIVERED" | "DEAD"): void {
    this.tables.commit(() => {
      const deliveredAtMs = state === "DELIVERED" ? this.nowMs() : null;
      this.tables.delete(this.tables.open, row.id);
      this.tables.put(this.tables.closed, row.id, { ...row, ...UNCLAIMED, state, deliveredAtMs });
    });
  }

  /** Moves the row to DEAD and keeps a copy as a dead letter. */
  writeDeadLetter(pipeline: string, row: MemoryEventRow, hold: MemoryHoldRow): void {
    this.tables.commit(() => {
      this.close({ ...row, attempts: hold.attempts }, "DEAD");
      const { attempts, parks, errors } = hold;
      const letter: MemoryDeadLetter = { pipeline, event: row, attempts, parks, errors, diedAtMs: this.nowMs() };
      this.tables.put(this.tables.deadLetters, row.id, letter);
    });
  }
}

function rowOf(event: NewMemoryEvent, sequence: number, nowMs: number): MemoryEventRow {
  return {
    sequence,
    id: event.id,
    type: event.type,
    key: event.key ?? null,
    payload: typeof event.payload === "string" ? Buffer.from(event.payload) : (event.payload ?? Buffer.alloc(0)),
    headers: event.headers ?? {},
    correlationId: event.correlationId ?? null,
    createdAt: event.createdAt === undefined ? new Date(nowMs).toISOString() : event.createdAt,
    unreadable: event.unreadable ?? null,
    state: "PENDING",
    attempts: 0,
    availableAtMs: nowMs,
    ...UNCLAIMED,
    formerClaim: null,
    deliveredAtMs: null,
  };
}
