import type { FoundTable } from "../config/sources/find-tables.ts";
import type { LogFigure } from "../operations/logs/log-list.ts";
import type { RelayQuestions } from "../operations/overview/relay-figures.ts";
import type { QueueSource } from "../ports/queue-store.ts";

/** The storage that holds the service's outboxes. The rest of the service does not depend on its kind. */
export interface OutboxStore {
  /** Throws when the store does not answer. */
  ping(): Promise<void>;
  /** Migrates the store to this version. Returns the names of the migrations that ran. */
  migrate(): Promise<readonly string[]>;
  /** Throws when the schema does not fit this version; the error names the command that fixes it. */
  requireFit(): Promise<void>;
  /** The tables to read, or what represents a table in this store. */
  find(): Promise<readonly FoundTable[]>;
  source(table: FoundTable): QueueSource;
  /** Does the periodic maintenance. Returns what an operator should know about these tables, failures included. */
  upkeep(tables: readonly FoundTable[]): Promise<readonly Remark[]>;
  /** The figures of the logs that are read. */
  logFigures(): Promise<readonly LogFigure[]>;
  /** What is known across all instances; null where the store does not record it. */
  readonly questions: RelayQuestions | null;
  close(): Promise<void>;
}

/** Something that an operator should know, with the fix. */
export interface Remark {
  readonly severity: "error" | "warning";
  readonly what: string;
  readonly fix: string;
  /** True when maintenance failed: health reports it until it succeeds. */
  readonly isFailure?: true;
}
