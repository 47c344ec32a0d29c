import type { TypeFilter } from "../../ports/queue-store.ts";
import type { ColumnNames } from "../../postgres/column-names.ts";
import type { TableName } from "../../postgres/identifiers.ts";
import type { Database } from "../../postgres/pool.ts";
import type { TableShape } from "../../sources/postgres/table-shape.ts";

/** What is wrong and what to do: a statement, a setting or a command that can be copied. */
export interface Finding {
  /** An `error` keeps events from being delivered, a `warning` will hurt one day. */
  readonly severity: "error" | "warning";
  readonly check: string;
  readonly what: string;
  readonly fix: string;
}

export interface DoctorTable {
  readonly schema: string;
  readonly table: string;
  readonly isOpenOutbox: boolean;
  readonly isThere: boolean;
}

/** The destination as far as a doctor asks it; brokers of every make answer alike. */
export interface DoctorDestination {
  readonly name: string;
  /** `host:port`; empty where there is nothing to reach. */
  readonly brokers: readonly string[];
  /** Present where delivery is exactly once: throws with the way out when that is not possible. */
  readonly prepareTransactions?: () => Promise<void>;
  /** Present where topics have to be there before: those that cannot be written to, with the reason. */
  readonly missingTopics?: (topics: readonly string[]) => Promise<ReadonlyMap<string, string>>;
  /** What mends a missing topic; `{topic}` stands for its name. */
  readonly topicFix?: string;
  /** Which events of a source are its own; null takes everything. */
  readonly rulesFor: (source: { readonly schema: string; readonly table: string }) => TypeFilter;
  /** The topic of an event of this type; null when it goes elsewhere or more than the type decides. */
  readonly topicOf: (type: string, source: { readonly schema: string; readonly table: string }) => string | null;
}

/** All that is examined. */
export interface DoctorSubject {
  readonly database: Database;
  readonly columns: ColumnNames;
  readonly tables: readonly DoctorTable[];
  /** Managed outboxes, which are looked at in another way. */
  readonly managed?: readonly TableName[];
  /** Append-only tables of others, read by position or from the write-ahead log. */
  readonly eventTables?: readonly TableName[];
  /** Tables, or `message` and a prefix, that are read from the write-ahead log. */
  readonly wal?: readonly TableName[];
  /** The publication that the write-ahead log is read by; undefined: one of the relay's making. */
  readonly publication?: string;
  /** Logs of any kind are sources too: then there may be no table of a queue. */
  readonly hasLogs?: boolean;
  readonly destinations: readonly DoctorDestination[];
  /** Null: delivered events are kept for ever. */
  readonly retentionMs: number | null;
}

/** A table whose shape could be read. */
export interface ShapedTable {
  readonly table: DoctorTable;
  readonly shape: TableShape;
}
