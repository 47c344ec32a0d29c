import type { TableName } from "../../postgres/identifiers.ts";
import type { Database } from "../../postgres/pool.ts";
import { transaction } from "../../postgres/transaction.ts";
import { isOpenOutbox } from "../../sources/postgres/openoutbox/openoutbox-table.ts";
import { operationReadSettings } from "../events/event-source.ts";

/** Which adapter reads a table of events. A missing table counts as an outbox, whose check then reports it. */
export async function tableKind(database: Database, { schema, table }: TableName): Promise<"openoutbox" | "outbox"> {
  const settings = operationReadSettings(database, "reading the table");
  const rows = await transaction(database.pool, settings, (session) =>
    session.rows(
      `select a.attname from pg_catalog.pg_attribute a join pg_catalog.pg_class c on c.oid = a.attrelid
       join pg_catalog.pg_namespace n on n.oid = c.relnamespace
       where n.nspname = $1 and c.relname = $2 and a.attnum > 0 and not a.attisdropped`,
      [schema, table],
    ),
  );
  return isOpenOutbox(rows.map((row) => row[0] ?? "")) ? "openoutbox" : "outbox";
}
