import type { TableName } from "./identifiers.ts";

/**
 * What the shared statements need to know of a table of events. Every member but the name is an SQL fragment over the
 * table's alias `t`, ready to use in a statement.
 */
export interface EventTable {
  readonly name: TableName;
  /** Schema and table, quoted, without alias. */
  readonly quotedName: string;
  /** The column, for comparisons that can use its index. */
  readonly id: string;
  /** The id's type, for casts: `uuid`. */
  readonly idType: string;
  /** Never null. */
  readonly eventType: string;
  /**
   * The column that stores the type unchanged, for conditions that an index can contain too; null without such a
   * column.
   */
  readonly typeColumn: string | null;
  readonly key: string;
  /** As bytea, never null. */
  readonly payloadBytes: string;
  /** As jsonb; `null` where the table has none. */
  readonly headersJson: string;
  readonly correlationId: string;
  /** As timestamptz. */
  readonly createdAt: string;
  /** True for a row that is not marked: it has yet to be delivered, now or later. */
  readonly unsettled: string;
}
