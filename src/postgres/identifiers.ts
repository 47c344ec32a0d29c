import { RelayError } from "../core/errors.ts";

export interface TableName {
  readonly schema: string;
  readonly table: string;
}

/** PostgreSQL cuts longer names off in silence and would then mean another object. */
const NAME_BYTES_MAX = 63;

/** A name as an SQL identifier, whatever it contains. */
export function quoteIdentifier(name: string): string {
  if (name === "" || name.includes("\0") || Buffer.byteLength(name) > NAME_BYTES_MAX) {
    throw new RelayError("CONFIG_INVALID", `${JSON.stringify(name)} is no name that PostgreSQL takes (1 to 63 bytes)`);
  }
  return `"${name.replaceAll('"', '""')}"`;
}

export function quoteTable(name: TableName): string {
  return `${quoteIdentifier(name.schema)}.${quoteIdentifier(name.table)}`;
}

/** A text as an SQL literal. Safe whatever `standard_conforming_strings` says. */
export function quoteLiteral(text: string): string {
  if (text.includes("\0")) {
    throw new RelayError("CONFIG_INVALID", `${JSON.stringify(text.slice(0, 100))} contains a zero character`);
  }
  const quoted = `'${text.replaceAll("'", "''")}'`;
  return text.includes("\\") ? `E${quoted.replaceAll("\\", "\\\\")}` : quoted;
}

/** A list of texts as one literal, to be cast: `${quoteArray(ids)}::uuid[]`. Much cheaper to parse than `array[..]`. */
export function quoteArray(values: readonly string[]): string {
  if (values.length === 0) return "'{}'";
  const joined = values.join('","');
  // The quotes between the values are the only ones when none of them needs an escape, as with ids.
  const plain = !joined.includes("\\") && joined.split('"').length === values.length * 2 - 1;
  const body = plain ? joined : values.map((value) => value.replace(/["\\]/g, "\\$&")).join('","');
  return quoteLiteral(`{"${body}"}`);
}

/** Splits `schema.table`; either part may stand in double quotes. Without a schema: `public`. */
export function parseTableName(text: string): TableName {
  const part = `"(?:[^"]|"")+"|[^".]+`;
  const match = new RegExp(`^(?:(${part})\\.)?(${part})$`).exec(text);
  if (!match?.[2]) throw new RelayError("CONFIG_INVALID", `${JSON.stringify(text)} is no table name like schema.table`);
  const name = { schema: match[1] === undefined ? "public" : unquote(match[1]), table: unquote(match[2]) };
  quoteTable(name);
  return name;
}

function unquote(part: string): string {
  return part.startsWith('"') ? part.slice(1, -1).replaceAll('""', '"') : part;
}

/** For people: `orders.outbox`. */
export function displayTable(name: TableName): string {
  return `${name.schema}.${name.table}`;
}
