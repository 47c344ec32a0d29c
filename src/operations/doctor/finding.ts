import type { OutboxEvent } from "../../core/event.ts";
import type { Obstacle } from "../../ports/publisher.ts";
import type { TypeFilter } from "../../ports/queue-store.ts";
import type { ColumnNames } from "../../postgres/column-names.ts";
import type { TableName } from "../../postgres/identifiers.ts";
import type { Database } from "../../postgres/pool.ts";
import type { TableShape } from "../../sources/postgres/table-shape.ts";
import type { Configured } from "../pipelines/orphans.ts";

/** What is wrong and what to do: a statement, a setting or a command to copy. */
export interface Finding {
  /** An `error` stops delivery, a `warning` will cause problems later, a `note` is information. */
  readonly severity: "error" | "warning" | "note";
  readonly check: string;
  readonly what: string;
  readonly fix: string;
}

/** A table of events with its kind. */
export interface DoctorTable {
  readonly schema: string;
  readonly table: string;
  readonly isOpenOutbox: boolean;
  readonly isThere: boolean;
}

/** A destination as the doctor sees it, whatever its kind. */
export interface DoctorDestination {
  readonly name: string;
  /** `host:port`; empty where there is nothing to reach. */
  readonly brokers: readonly string[];
  /** Connects, logs in and checks its targets, without writing. Ends in bounded time; throws when it cannot check. */
  readonly examine?: () => Promise<readonly Obstacle[]>;
  /**
   * Present for exactly-once delivery: throws, with the fix, when transactions do not work. Returns what `run` would
   * create for them; creates nothing itself.
   */
  readonly examineTransactions?: () => Promise<readonly string[]>;
  /** Present where topics must exist: those that cannot be written to, with the reason. */
  readonly missingTopics?: (topics: readonly string[]) => Promise<ReadonlyMap<string, string>>;
  /** How to fix a missing topic; `{topic}` stands for its name. */
  readonly topicFix?: string;
  /** Which events of a source it receives; null for all. */
  readonly rulesFor: (source: TableName) => TypeFilter;
  /** The topics that the routes of a source name without an event: fixed ones, and those of exact types. */
  readonly namedTopics: (source: TableName) => readonly string[];
  /** The topics of such an event; none when it has another destination, or when more than the sample decides. */
  readonly topicsOf: (sample: EventSample, source: TableName) => readonly string[];
}

/** What is read of waiting events to know where they go. */
export type EventSample = Pick<OutboxEvent, "type" | "headers">;

/** A table to take samples from, as SQL fragments over its alias `t`. */
export interface SampledTable {
  readonly table: TableName;
  readonly type: string;
  /** The condition of waiting rows; null for a log, whose rows have no state. */
  readonly waiting: string | null;
  /** The position by which the newest rows of a log are found; null without an index on it. */
  readonly newest: string | null;
  /** The value that Debezium's topics contain; null elsewhere. */
  readonly aggregateType: string | null;
}

/** A source of events with samples of what waits there, one per type. */
export interface SampledSource {
  readonly source: TableName;
  readonly samples: readonly EventSample[];
}

interface WalLog extends TableName {
  /** Its rows become messages by Debezium's rules. */
  readonly isDebezium?: boolean;
}

/** Everything that the doctor examines. */
export interface DoctorSubject {
  readonly database: Database;
  readonly columns: ColumnNames;
  readonly tables: readonly DoctorTable[];
  /** Managed outboxes, which have checks of their own. */
  readonly managed?: readonly TableName[];
  /** Append-only tables of the application, read by position or from the write-ahead log. */
  readonly eventTables?: readonly TableName[];
  /** Tables, or `message` and a prefix, that are read from the write-ahead log. */
  readonly wal?: readonly WalLog[];
  /** The publication for the write-ahead log; undefined: one that the relay creates. */
  readonly publication?: string;
  /** There are logs among the sources, so a missing queue table is no finding. */
  readonly hasLogs?: boolean;
  readonly destinations: readonly DoctorDestination[];
  /** The configured sources, where known. */
  readonly configured?: Configured;
  /** Null: delivered events are kept forever. */
  readonly retentionMs: number | null;
}

/** A table whose shape could be read. */
export interface ShapedTable {
  readonly table: DoctorTable;
  readonly shape: TableShape;
}
