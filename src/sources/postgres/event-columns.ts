import { HEADERS_BYTES_MAX, TEXT_BYTES_MAX, tooLarge } from "../../core/event.ts";
import { quoteLiteral } from "../../postgres/identifiers.ts";
import type { TableShape } from "./table-shape.ts";

/**
 * Larger payloads and headers are loaded later, with their page, so that one fetch stays small whatever the rows
 * contain.
 */
const INLINE_BYTES_MAX = 16 * 1024;

/** The columns of a row as `eventColumnsSql` selects them. The columns after `excess` are read only to break ties. */
export const COLUMN = {
  id: 0,
  lane: 1,
  type: 2,
  key: 3,
  payload: 4,
  /** Set only when the payload was left out because of its size. */
  size: 5,
  correlationId: 6,
  createdAt: 7,
  /** The headers; `+` and the size when they were left out, `!` and the size when they exceed the limit. */
  headers: 8,
  attempts: 9,
  trace: 10,
  /** A readable list of the parts that are too large to load; null when there are none. */
  excess: 11,
  order: 12,
  xmin: 13,
  cmin: 14,
  ctid: 15,
} as const;

/**
 * The row's lane: a hash of the key, or of the id where there is no key; the first one for a table in its own order. `collate "C"` makes equal mean equal bytes.
 */
export function laneSql(shape: TableShape, lanes: number): string {
  if (lanes === 1 || shape.isSerial) return "0";
  const hash = `hashtextextended(coalesce(${shape.key}, ${shape.id}::text) collate "C", 0)`;
  return `mod(${hash} & 9223372036854775807, ${lanes})`;
}

/** The select list that `EventReader` reads. */
export function eventColumnsSql(shape: TableShape, lanes: number, payloadBytesMax: number): string {
  const body = shape.payload.kind === "computed" ? "p.body" : shape.payload.body;
  const inlineMax = Math.min(INLINE_BYTES_MAX, payloadBytesMax);
  const isInline = `${sizeOf(body)} + ${hasHeaders(shape) ? sizeOf("p.headers") : 0} <= ${inlineMax}`;
  const columns = [
    shape.idText,
    // Null is the only lane of a pipeline that has one: a column without a value costs the driver nothing.
    lanes === 1 ? "null" : laneSql(shape, lanes),
    typeSql(shape),
    shape.unbounded.has("key") ? bounded(shape.key) : shape.keyText,
    `case when ${isInline} then ${body} end`,
    sizeSql(shape, body, isInline),
    shape.unbounded.has("correlation id") ? bounded(shape.correlationId) : shape.correlationText,
    shape.createdText,
    headersSql(shape, isInline),
    shape.attempts,
    bounded(shape.traceText),
    excessSql(shape),
  ];
  if (!shape.order.unique) {
    columns.push(shape.order.isCreatedAt ? "null" : `${shape.order.column}::text`, "t.xmin", "t.cmin", "t.ctid");
  }
  return columns.join(", ");
}

/** The type, cut when it is too long. Checking the length first is cheaper than always cutting. */
export function typeSql({ eventType }: TableShape): string {
  return `case when octet_length(${eventType}) <= ${TEXT_BYTES_MAX} then ${eventType} else left(${eventType}, 100) end`;
}

/** The table as `t`, with payload and headers as `p` where only a conversion shows their size. */
export function eventFromSql(shape: TableShape, payloadBytesMax: number): string {
  const { kind, column, body } = shape.payload;
  const converted: string[] = [];
  if (kind === "computed") {
    converted.push(`case when pg_column_size(${column}) <= ${payloadBytesMax} then ${body} end as body`);
  }
  if (hasHeaders(shape)) converted.push(`${shape.headersText} as headers`);
  if (converted.length === 0) return `${shape.quotedName} t`;
  // `offset 0` keeps the planner from inlining the conversions, which would run them once per mention.
  return `${shape.quotedName} t cross join lateral (select ${converted.join(", ")} offset 0) p`;
}

/** The payload and headers of rows that left them out, unless they exceed the limits. */
export function leftOutColumnsSql(shape: TableShape, payloadBytesMax: number): string {
  const { body } = shape.payload;
  const headers = shape.headersText;
  return `case when octet_length(${body}) <= ${payloadBytesMax} then ${body} end,
    ${isNull(headers) ? "null" : `case when octet_length(${headers}) <= ${HEADERS_BYTES_MAX} then ${headers} end`}`;
}

const hasHeaders = ({ headersText }: TableShape): boolean => !isNull(headersText);

const isNull = (text: string): boolean => /^null(::\w+)?$/.test(text);

function sizeOf(text: string): string {
  return isNull(text) ? "0" : `coalesce(octet_length(${text}), 0)`;
}

/** The text, or null when it exceeds the limit. */
export function bounded(text: string): string {
  return isNull(text) ? "null" : `case when octet_length(${text}) <= ${TEXT_BYTES_MAX} then ${text} end`;
}

/** A readable list of the parts that are too large to load; null when there are none. */
export function excessSql({ eventType, key, correlationId, traceText, unbounded }: TableShape): string {
  const texts: [string, string][] = [["type", eventType]];
  if (unbounded.has("key")) texts.push(["key", key]);
  if (unbounded.has("correlation id")) texts.push(["correlation id", correlationId]);
  if (!isNull(traceText)) texts.push(["trace", traceText]);
  const parts = texts.map(([name, text]) => {
    const message = quoteLiteral(tooLarge(name, "#", TEXT_BYTES_MAX));
    return `case when octet_length(${text}) > ${TEXT_BYTES_MAX} then replace(${message}, '#', octet_length(${text})::text) end`;
  });
  const largest = `greatest(${texts.map(([, text]) => `octet_length(${text})`).join(", ")})`;
  return `case when ${largest} > ${TEXT_BYTES_MAX} then concat_ws('; ', ${parts.join(", ")}) end`;
}

function sizeSql(shape: TableShape, body: string, isInline: string): string {
  const large = `when not (${isInline}) then octet_length(${body})`;
  if (shape.payload.kind !== "computed") return `case ${large} end`;
  const { column } = shape.payload;
  return `case when p.body is null and ${column} is not null then pg_column_size(${column}) ${large} end`;
}

function headersSql(shape: TableShape, isInline: string): string {
  if (!hasHeaders(shape)) return "null";
  return `case when ${isInline} then p.headers else
    case when octet_length(p.headers) <= ${HEADERS_BYTES_MAX} then '+' else '!' end || octet_length(p.headers) end`;
}
