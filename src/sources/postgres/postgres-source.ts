import type { QueueSource } from "../../ports/queue-store.ts";
import type { ColumnNames } from "../../postgres/column-names.ts";
import { parseTableName } from "../../postgres/identifiers.ts";
import { postgresMembership } from "../../postgres/membership.ts";
import { type Database, type DatabaseOptions, openDatabase } from "../../postgres/pool.ts";
import { PostgresStore } from "./postgres-store.ts";
import { referenceName, type TableReference } from "./table-discovery.ts";

export interface PostgresSourceOptions {
  /** An open database, which stays the caller's to close, or how to open one. */
  readonly database: Database | DatabaseOptions;
  /** `schema.table`, or what `discoverTables` returned. */
  readonly table: string | TableReference;
  readonly name?: string;
  readonly columns?: ColumnNames;
}

/** A table of events that carries its own flags or status. Nothing is sent before the first use. */
export function postgresSource(options: PostgresSourceOptions): QueueSource {
  const reference = typeof options.table === "string" ? parseTableName(options.table) : options.table;
  const isBorrowed = "pool" in options.database;
  const database = "pool" in options.database ? options.database : openDatabase(options.database);
  return {
    name: options.name ?? referenceName(reference),
    membership: postgresMembership(database),
    pipeline: (spec) => new PostgresStore({ database, reference, columns: options.columns ?? {}, spec }),
    close: async () => {
      if (!isBorrowed) await database.close();
    },
  };
}
