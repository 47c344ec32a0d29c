import type { EventHeaders } from "../../core/event.ts";
import type { Pause, PipelineSpec, QueueSource, QueueStore } from "../../ports/queue-store.ts";

/** What a source can do; selects the cases that apply to it. */
export interface StoreCapabilities {
  /** A claim is written into the row, as in the Open Outbox table. */
  readonly durableClaims: boolean;
  /** The table records that an event is dead, so that an operator can reset it there. */
  readonly ownStatus: boolean;
  /** Content of a payload column. `json` means jsonb, which normalizes its text. */
  readonly payloads: "json" | "text" | "bytes";
  /** The rows have headers and a correlation id. */
  readonly headers: boolean;
  /** The relay can delete delivered rows. */
  readonly prunes: boolean;
  /** Rows are read by position: they are never marked or deleted. */
  readonly isLog?: boolean;
  /** The harness can restart the server. */
  readonly restart: boolean;
}

export interface NewEvent {
  readonly id: string;
  readonly type: string;
  readonly key: string | null;
  readonly payload: Buffer;
  readonly headers: EventHeaders;
  readonly correlationId: string | null;
}

export interface StoredDeadLetter {
  readonly id: string;
  readonly payload: Buffer;
  readonly reason: string;
  readonly failures: number;
  readonly firstFailedAt: Date;
  readonly lastFailedAt: Date;
  /** The error of every attempt, oldest first. */
  readonly errors: readonly string[];
}

/** A source on an empty table, with operations that only the adapter's author can implement. */
export interface StoreSubject {
  readonly source: QueueSource;
  /** A new object for this pipeline, as another process would make it. */
  store(spec: PipelineSpec): QueueStore;
  /** Maps a text to an id of the table's type, a UUID by default. Deterministic, in no particular order. */
  idOf?(name: string): string;

  /** Inserts each event in its own transaction, in order; resolves after the last commit. Existing ids are skipped. */
  insert(events: readonly NewEvent[]): Promise<void>;
  /** Inserts each list with one statement, all in one transaction. */
  insertInOneTransaction(statements: readonly (readonly NewEvent[])[]): Promise<void>;

  /** Events that are neither delivered nor dead. */
  pendingIds(): Promise<readonly string[]>;
  deliveredIds(): Promise<readonly string[]>;
  deadLetters(): Promise<readonly StoredDeadLetter[]>;

  /** Changes that operators and other programs make without the relay. */
  deleteRow(id: string): Promise<void>;
  markByHand(id: string): Promise<void>;
  /** Puts a dead event back to pending in its own table; with `ownStatus`. */
  resetByHand?(id: string): Promise<void>;

  /** Pauses a prepared pipeline; null resumes it. */
  pause(pipeline: string, pause: Pause | null): Promise<void>;

  /** Makes the instance look as if it had not renewed for longer than its lease. */
  expireInstance(id: string): Promise<void>;
  /** Makes its expiry impossibly far away, as after a clock that stepped back. */
  expireImpossiblyFar(id: string): Promise<void>;

  /** With `durableClaims`: another relay claims these events now, or so long ago that its lease has expired. */
  claimByOtherRelay?(ids: readonly string[]): Promise<void>;
  ageClaims?(ids: readonly string[]): Promise<void>;

  /** With `restart`: resolves when the server answers again. */
  restart?(): Promise<void>;
  close(): Promise<void>;
}

export interface StoreHarness {
  readonly capabilities: StoreCapabilities;
  open(): Promise<StoreSubject>;
}
