import { RelayError } from "../core/errors.ts";

/** A table and its schema, unquoted. */
export interface TableName {
  readonly schema: string;
  readonly table: string;
}

/** PostgreSQL silently cuts longer names, which would then mean another object. */
const NAME_BYTES_MAX = 63;

/** A name as an SQL identifier, whatever it contains. Throws CONFIG_INVALID. */
export function quoteIdentifier(name: string): string {
  if (name === "" || name.includes("\0") || Buffer.byteLength(name) > NAME_BYTES_MAX) {
    throw new RelayError("CONFIG_INVALID", `${JSON.stringify(name)} is not a valid PostgreSQL name (1 to 63 bytes)`);
  }
  return `"${name.replaceAll('"', '""')}"`;
}

/** The quoted name with its schema. */
export function quoteTable(name: TableName): string {
  return `${quoteIdentifier(name.schema)}.${quoteIdentifier(name.table)}`;
}

/** A text as an SQL literal. Safe for any setting of `standard_conforming_strings`. */
export function quoteLiteral(text: string): string {
  if (text.includes("\0")) {
    throw new RelayError("CONFIG_INVALID", `${JSON.stringify(text.slice(0, 100))} contains a NUL character`);
  }
  const quoted = `'${text.replaceAll("'", "''")}'`;
  return text.includes("\\") ? `E${quoted.replaceAll("\\", "\\\\")}` : quoted;
}

/** A value as JSON in an SQL literal, `null` for undefined. jsonb cannot store NUL. */
export function jsonSql(value: unknown): string {
  return value === undefined ? "null" : quoteLiteral(JSON.stringify(value).replaceAll("\\u0000", ""));
}

/** A list of texts as one literal, to be cast: `${quoteArray(ids)}::uuid[]`. Much cheaper to parse than `array[..]`. */
export function quoteArray(values: readonly string[]): string {
  if (values.length === 0) return "'{}'";
  const joined = values.join('","');
  // When no value needs an escape, as with ids, the quotes between the values are the only ones.
  const plain = !joined.includes("\\") && joined.split('"').length === values.length * 2 - 1;
  const body = plain ? joined : values.map((value) => value.replace(/["\\]/g, "\\$&")).join('","');
  return quoteLiteral(`{"${body}"}`);
}

/**
 * An operator of the catalog, for statements that run under the application's own search path. All of them bind equally:
 * use parentheses.
 */
export function catalogOperator(symbol: string): string {
  return `operator(pg_catalog.${symbol})`;
}

/** Splits `schema.table`; either part can be in double quotes. Without a schema: `public`. */
export function parseTableName(text: string): TableName {
  const part = `"(?:[^"]|"")+"|[^".]+`;
  const match = new RegExp(`^(?:(${part})\\.)?(${part})$`).exec(text);
  if (!match?.[2])
    throw new RelayError("CONFIG_INVALID", `${JSON.stringify(text)} is not a table name of the form schema.table`);
  const name = { schema: match[1] === undefined ? "public" : unquote(match[1]), table: unquote(match[2]) };
  quoteTable(name);
  return name;
}

function unquote(part: string): string {
  return part.startsWith('"') ? part.slice(1, -1).replaceAll('""', '"') : part;
}

/** For messages: `orders.outbox`. */
export function displayTable(name: TableName): string {
  return `${name.schema}.${name.table}`;
}

/** A text in dollar quotes whose tag does not occur in it. */
export function dollarQuoted(text: string): string {
  let tag = "$managed$";
  while (text.includes(tag)) tag = `$m${tag.length}${tag.slice(1)}`;
  return `${tag}${text}${tag}`;
}
