import type { QueueSource } from "../../src/ports/queue-store.ts";
import type { ColumnNames } from "../../src/postgres/column-names.ts";
import type { TableName } from "../../src/postgres/identifiers.ts";
import { postgresSource } from "../../src/sources/postgres/postgres-source.ts";
import type { TableReference } from "../../src/sources/postgres/table-discovery.ts";

export interface TableSourceOptions {
  readonly url: string;
  readonly relaySchema: string;
  readonly tables: readonly (TableName | TableReference)[];
  readonly leaseMs: number;
  readonly columns?: ColumnNames;
}

/** One source per table, all on the same connections. */
export function tableSources({ url, relaySchema, tables, leaseMs, columns }: TableSourceOptions): QueueSource[] {
  // A write that waits longer than half a lease could come back to a lane that is somebody else's.
  const timeouts = {
    statementMs: Math.min(4_000, leaseMs / 2),
    lockMs: Math.min(2_000, leaseMs / 4),
    connectMs: 2_000,
  };
  const database = { url, relaySchema, timeouts };
  return tables.map(({ schema, table }) =>
    postgresSource({ database, table: { schema, table }, ...(columns === undefined ? {} : { columns }) }),
  );
}
