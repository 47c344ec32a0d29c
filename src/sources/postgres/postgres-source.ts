import type { QueueSource } from "../../ports/queue-store.ts";
import type { ColumnNames } from "../../postgres/column-names.ts";
import { parseTableName } from "../../postgres/identifiers.ts";
import { postgresMembership } from "../../postgres/membership.ts";
import { type Database, type DatabaseOptions, databaseOf } from "../../postgres/pool.ts";
import { TableCounter } from "./counted-table.ts";
import { keptColumns } from "./kept-columns.ts";
import { PostgresStore } from "./postgres-store.ts";
import { readShape, referenceName, type TableReference } from "./table-discovery.ts";
import type { TableShape } from "./table-shape.ts";

/** Options of `postgresSource`. */
export interface PostgresSourceOptions {
  /** An open database, which the caller closes, or the options to open one. */
  readonly database: Database | DatabaseOptions;
  /** `schema.table`, or what `discoverTables` returned. */
  readonly table: string | TableReference;
  readonly name?: string;
  readonly columns?: ColumnNames;
}

/** A table of events with its own flags or status. It connects at the first use. */
export function postgresSource(options: PostgresSourceOptions): QueueSource {
  const reference = typeof options.table === "string" ? parseTableName(options.table) : options.table;
  const { close, database } = databaseOf(options.database);
  const { columns = {} } = options;
  const name = referenceName(reference);
  const readShapeAgain = (before?: TableShape) => readShape(database, reference, keptColumns(columns, before));
  const counter = new TableCounter({ database, readShape: readShapeAgain });
  return {
    name: options.name ?? name,
    membership: postgresMembership(database),
    pipeline: (spec) => new PostgresStore({ database, spec, name, readShape: readShapeAgain }),
    backlogs: () => counter.count(),
    close,
  };
}
