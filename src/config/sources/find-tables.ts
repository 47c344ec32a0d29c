import { parseTableName, type TableName } from "../../postgres/identifiers.ts";
import { isManagedOutbox } from "../../postgres/managed/managed-names.ts";
import type { Database } from "../../postgres/pool.ts";
import { transaction } from "../../postgres/transaction.ts";
import { MESSAGE_SCHEMA } from "../../sources/postgres/log/log-preset.ts";
import { isOpenOutbox } from "../../sources/postgres/openoutbox/openoutbox-table.ts";
import { OUTBOX_TABLES, readShape } from "../../sources/postgres/table-discovery.ts";
import type { ServiceConfig } from "../service-config.ts";
import type { NamedLog } from "./logs-config.ts";
import { isLog, type TablePreset } from "./presets.ts";

/** A table to read, or one that is configured but missing. A log is listed once for each subscriber. */
export interface FoundTable {
  readonly schema: string;
  readonly table: string;
  readonly preset: TablePreset;
  /** The subscriber of a log; null for a queue, and for a log with routes instead. */
  readonly subscriber: string | null;
  /** Whether rows in the write-ahead log become messages by Debezium's rules. */
  readonly isDebezium: boolean;
  /** Whether the table has no key and is delivered in its own order. */
  readonly isSerial: boolean;
  readonly isThere: boolean;
}

/** The name of the table's source. Progress is stored under it. */
export function sourceName({ schema, table, subscriber }: FoundTable): string {
  return `${schema}.${table}${subscriber === null ? "" : `@${subscriber}`}`;
}

type FinderConfig = Pick<ServiceConfig, "sources" | "logs" | "subscribers">;
type Kind = Pick<FoundTable, "preset" | "isSerial">;
type Catalogued = TableName & { readonly columns: readonly string[] };

const OPEN_OUTBOX_TABLE = "openoutbox_events";
/** The columns of the table that Debezium's outbox router reads. */
const DEBEZIUM_COLUMNS = ["id", "aggregatetype", "aggregateid", "type", "payload"];
const TABLE_NAMES = [...OUTBOX_TABLES, OPEN_OUTBOX_TABLE];

/** Finds the tables, repeatedly. Inspects closely only those that are new or changed. */
export class TableFinder {
  readonly #database: Database;
  readonly #sources: ServiceConfig["sources"];
  readonly #logs: ServiceConfig["logs"];
  readonly #subscribers: readonly string[];
  readonly #kinds = new Map<string, Kind>();

  constructor(database: Database, { logs, sources, subscribers }: FinderConfig) {
    this.#database = database;
    this.#sources = sources;
    this.#logs = logs;
    this.#subscribers = subscribers.map(({ name }) => name);
  }

  /**
   * Every table with a usual name in the configured schemas, and every named table. Lists missing ones too, under their
   * expected name, so that they are reported and start by themselves when they appear.
   */
  async find(): Promise<readonly FoundTable[]> {
    const { schemas, tables } = this.#sources;
    const named = [
      ...tables.map(parseTableName),
      ...this.#logs.named.filter(({ schema }) => schema !== MESSAGE_SCHEMA),
    ];
    const rows = await this.#catalogue(named);
    const found: Omit<FoundTable, "subscriber">[] = [];
    for (const row of rows) {
      const log = this.#logOf(row);
      const kind = log === undefined ? await this.#kindOf(row) : parallel(log.preset);
      const { schema, table } = row;
      found.push({ schema, table, ...kind, isDebezium: kind.preset === "wal" && this.#isDebezium(row), isThere: true });
    }
    const messages = this.#logs.named.filter(({ schema }) => schema === MESSAGE_SCHEMA);
    found.push(...messages.map((it) => ({ ...it, isSerial: false, isDebezium: false, isThere: true })));
    const missing = [
      ...(schemas === "*" ? [] : schemas.filter((schema) => !found.some((it) => it.schema === schema))).map(
        (schema) => ({
          schema,
          table: OUTBOX_TABLES[0] as string,
        }),
      ),
      ...named.filter(({ schema, table }) => !found.some((it) => it.schema === schema && it.table === table)),
    ];
    const absent = missing.map(({ schema, table }) => {
      const preset = this.#logOf({ schema, table })?.preset ?? presetOfName(table);
      const isDebezium = this.#logs.walPreset === "debezium";
      return { schema, table, ...parallel(preset), isDebezium, isThere: false };
    });
    return [...found, ...absent].flatMap((it) => this.#bySubscriber(it));
  }

  #bySubscriber(table: Omit<FoundTable, "subscriber">): FoundTable[] {
    if (!isLog(table.preset) || this.#subscribers.length === 0) return [{ ...table, subscriber: null }];
    return this.#subscribers.map((subscriber) => ({ ...table, subscriber }));
  }

  #logOf({ schema, table }: TableName): NamedLog | undefined {
    return this.#logs.named.find((log) => log.schema === schema && log.table === table);
  }

  #isDebezium({ columns }: Catalogued): boolean {
    const { walPreset } = this.#logs;
    return walPreset === null ? DEBEZIUM_COLUMNS.every((it) => columns.includes(it)) : walPreset === "debezium";
  }

  async #catalogue(named: readonly TableName[]): Promise<Catalogued[]> {
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

  async #kindOf({ schema, table, columns }: Catalogued): Promise<Kind> {
    if (isOpenOutbox(columns)) return parallel("openoutbox");
    if (isManagedOutbox(columns)) return parallel("managed");
    const key = JSON.stringify([schema, table, columns]);
    const known = this.#kinds.get(key);
    if (known !== undefined) return known;
    try {
      const { preset, isSerial = false } = await readShape(this.#database, { schema, table }, this.#sources.columns);
      this.#kinds.set(key, { preset, isSerial });
      return { preset, isSerial };
    } catch {
      // The source reports what is wrong with the table until it is fixed.
      return parallel(presetOfName(table));
    }
  }
}

const parallel = (preset: TablePreset): Kind => ({ preset, isSerial: false });

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
