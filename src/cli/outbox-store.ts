import type { FoundTable } from "../config/find-tables.ts";
import type { LogFigure } from "../operations/log-figures.ts";
import type { RelayQuestions } from "../operations/overview/relay-figures.ts";
import type { QueueSource } from "../ports/queue-store.ts";

/** Where the service's events wait: what it asks of the place as a whole. The rest of it never knows which one it is. */
export interface OutboxStore {
  /** Throws when it gives no answer. */
  ping(): Promise<void>;
  /** Brings it up to this version; the names of the steps that were taken. */
  migrate(): Promise<readonly string[]>;
  /** Throws when it does not fit this version, with the command that mends it. */
  requireFit(): Promise<void>;
  /** The tables to read, or what stands for one. */
  find(): Promise<readonly FoundTable[]>;
  source(table: FoundTable): QueueSource;
  /** Does what has to be done now and then; what a person should know of these tables. */
  upkeep(tables: readonly FoundTable[]): Promise<readonly Remark[]>;
  /** Of those that read logs. */
  logFigures(): Promise<readonly LogFigure[]>;
  /** What all instances together do; null where the place does not know it. */
  readonly questions: RelayQuestions | null;
  close(): Promise<void>;
}

export interface Remark {
  readonly severity: "error" | "warning";
  readonly what: string;
  readonly fix: string;
}
