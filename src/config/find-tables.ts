import { parseTableName } from "../postgres/identifiers.ts";
import type { Database } from "../postgres/pool.ts";
import { transaction } from "../postgres/transaction.ts";
import { isOpenOutbox } from "../sources/openoutbox/openoutbox-table.ts";
import { OUTBOX_TABLES, readShape } from "../sources/postgres/table-discovery.ts";
import type { TablePreset } from "./presets.ts";
import type { ServiceConfig } from "./service-config.ts";

/** A table to be read, or one that should be there and is not. */
export interface FoundTable {
  readonly schema: string;
  readonly table: string;
  readonly preset: TablePreset;
  readonly isThere: boolean;
}

const OPEN_OUTBOX_TABLE = "openoutbox_events";
const TABLE_NAMES = [...OUTBOX_TABLES, OPEN_OUTBOX_TABLE];

/** Finds the tables again and again, and looks closely only at those that are new or have changed. */
export class TableFinder {
  readonly #database: Database;
  readonly #sources: ServiceConfig["sources"];
  readonly #presets = new Map<string, TablePreset>();

  constructor(database: Database, sources: ServiceConfig["sources"]) {
    this.#database = database;
    this.#sources = sources;
  }

  /**
   * Every table of the configured schemas under one of the usual names, and the table that was named. What is missing is
   * listed too, under the name it should have, so that it is told of and begins by itself when it appears.
   */
  async find(): Promise<readonly FoundTable[]> {
    const { schemas, tables } = this.#sources;
    const named = tables.map(parseTableName);
    const rows = await this.#catalogue(named);
    const found: FoundTable[] = [];
    for (const { schema, table, columns } of rows) {
      found.push({ schema, table, preset: await this.#presetOf(schema, table, columns), isThere: true });
    }
    const missing = [
      ...(schemas === "*" ? [] : schemas.filter((schema) => !found.some((it) => it.schema === schema))).map(
        (schema) => ({
          schema,
          table: OUTBOX_TABLES[0] as string,
        }),
      ),
      ...named.filter(({ schema, table }) => !found.some((it) => it.schema === schema && it.table === table)),
    ];
    return [...found, ...missing.map((it) => ({ ...it, preset: presetOfName(it.table), isThere: false }))];
  }

  async #catalogue(named: readonly { schema: string; table: string }[]) {
    const { schemas } = this.#sources;
    const settings = {
      context: this.#database.errorContext("looking for outbox tables"),
      statementTimeoutMs: this.#database.timeouts.statementMs,
      readOnly: true,
    };
    const rows = await transaction(this.#database.pool, settings, (session) =>
      session.rows(CATALOGUE_SQL, [
        schemas === "*",
        schemas === "*" ? [] : schemas,
        TABLE_NAMES,
        named.map(({ schema }) => schema),
        named.map(({ table }) => table),
        this.#database.relaySchema,
      ]),
    );
    return rows.map((row) => ({
      schema: row[0] ?? "",
      table: row[1] ?? "",
      columns: JSON.parse(row[2] ?? "[]") as readonly string[],
    }));
  }

  async #presetOf(schema: string, table: string, columns: readonly string[]): Promise<TablePreset> {
    if (isOpenOutbox(columns)) return "openoutbox";
    const key = JSON.stringify([schema, table, columns]);
    const known = this.#presets.get(key);
    if (known !== undefined) return known;
    try {
      const { preset } = await readShape(this.#database, { schema, table }, this.#sources.columns);
      this.#presets.set(key, preset);
      return preset;
    } catch {
      // What is wrong with it the source itself tells, again and again until it is mended.
      return presetOfName(table);
    }
  }
}

function presetOfName(table: string): TablePreset {
  return table === OPEN_OUTBOX_TABLE ? "openoutbox" : "flag";
}

const CATALOGUE_SQL = `
select n.nspname, c.relname, (select json_agg(a.attname order by a.attnum) from pg_catalog.pg_attribute a
  where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped)
from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where c.relkind in ('r', 'p') and not c.relispartition and n.nspname <> $6
  and n.nspname !~ '^pg_' and n.nspname <> 'information_schema'
  and (($1::boolean or n.nspname = any($2::text[])) and c.relname = any($3::text[])
    or (n.nspname, c.relname) in (select * from unnest($4::text[], $5::text[])))
order by 1, 2`;
