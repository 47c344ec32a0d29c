import type { Headers } from "../../core/event.ts";
import type { Pause, PipelineSpec, QueueSource, QueueStore } from "../../ports/queue-store.ts";

/** What a source can do; chooses the cases that bind it. */
export interface StoreCapabilities {
  /** A claim is written into the row, as in the Open Outbox table. */
  readonly durableClaims: boolean;
  /** The table itself says that an event is dead, so that a person can reset it there. */
  readonly ownStatus: boolean;
  /** What a payload column can hold. `json` means jsonb, which keeps only its own form of a text. */
  readonly payloads: "json" | "text" | "bytes";
  /** The rows have headers and a correlation id. */
  readonly headers: boolean;
  /** Delivered rows may be deleted by the relay. */
  readonly prunes: boolean;
  /** Nothing is marked in the rows, and nobody marks or deletes them: they are read by position. */
  readonly isLog?: boolean;
  /** The harness can restart the server. */
  readonly restart: boolean;
}

export interface NewEvent {
  readonly id: string;
  readonly type: string;
  readonly key: string | null;
  readonly payload: Buffer;
  readonly headers: Headers;
  readonly correlationId: string | null;
}

export interface StoredDeadLetter {
  readonly id: string;
  readonly payload: Buffer;
  readonly reason: string;
  readonly failures: number;
  readonly firstFailedAt: Date;
  readonly lastFailedAt: Date;
  /** The error of every attempt, the first one first. */
  readonly errors: readonly string[];
}

/** A source on an empty table, and what only an adapter's author can do to it. */
export interface StoreSubject {
  readonly source: QueueSource;
  /** A new object for this pipeline, as another process would make it. */
  store(spec: PipelineSpec): QueueStore;
  /** Ids are UUIDs unless the table wants others. Any text in, the same id out, in no particular order. */
  idOf?(name: string): string;

  /** Each event in a transaction of its own, in order; returns when the last one is committed. Known ids are skipped. */
  insert(events: readonly NewEvent[]): Promise<void>;
  /** One statement per list, all in one transaction. */
  insertInOneTransaction(statements: readonly (readonly NewEvent[])[]): Promise<void>;

  /** Events that are neither delivered nor dead. */
  pendingIds(): Promise<readonly string[]>;
  deliveredIds(): Promise<readonly string[]>;
  deadLetters(): Promise<readonly StoredDeadLetter[]>;

  /** What people and other programs do behind the relay's back. */
  deleteRow(id: string): Promise<void>;
  markByHand(id: string): Promise<void>;
  /** Puts a dead event back to pending in its own table; with `ownStatus`. */
  resetByHand?(id: string): Promise<void>;

  /** Stops the pipeline, which was prepared before; null lets it go on. */
  pause(pipeline: string, pause: Pause | null): Promise<void>;

  /** Makes the instance look as if it had not renewed for longer than its lease. */
  expireInstance(id: string): Promise<void>;
  /** Makes its expiry impossibly far away, as after a clock that stepped back. */
  expireImpossiblyFar(id: string): Promise<void>;

  /** With `durableClaims`: another relay claims these events now, or so long ago that its lease is over. */
  claimByStranger?(ids: readonly string[]): Promise<void>;
  ageClaims?(ids: readonly string[]): Promise<void>;

  /** With `restart`: returns when the server answers again. */
  restart?(): Promise<void>;
  close(): Promise<void>;
}

export interface StoreHarness {
  readonly capabilities: StoreCapabilities;
  open(): Promise<StoreSubject>;
}
