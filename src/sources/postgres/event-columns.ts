import type { TableShape } from "./table-shape.ts";

/** Larger payloads are fetched one page at a time when their turn comes, so that a page of rows stays small. */
const INLINE_BYTES_MAX = 32 * 1024;
/** Headers beyond this are not even parsed. */
const HEADERS_BYTES_MAX = 256 * 1024;

/** Where each value stands in a row. The columns after `trace` are read only where ties must be broken. */
export const COLUMN = {
  id: 0,
  lane: 1,
  type: 2,
  key: 3,
  payload: 4,
  /** Set only when the payload was left out for its size. */
  size: 5,
  correlationId: 6,
  createdAt: 7,
  headers: 8,
  attempts: 9,
  trace: 10,
  order: 11,
  xmin: 12,
  cmin: 13,
  ctid: 14,
} as const;

/** The hash slice of a row's key; a row without key goes by its id. `collate "C"`: equal means equal bytes. */
export function laneSql(shape: TableShape, lanes: number): string {
  if (lanes === 1) return "0";
  const hash = `hashtextextended(coalesce(${shape.key}, ${shape.id}::text) collate "C", 0)`;
  return `mod(${hash} & 9223372036854775807, ${lanes})`;
}

/** The select list that `EventReader` understands. */
export function eventColumnsSql(shape: TableShape, lanes: number, payloadBytesMax: number): string {
  const body = shape.payload.kind === "computed" ? "p.body" : shape.payload.body;
  const inlineMax = Math.min(INLINE_BYTES_MAX, payloadBytesMax);
  const columns = [
    shape.idText,
    laneSql(shape, lanes),
    shape.eventType,
    shape.keyText,
    `case when octet_length(${body}) <= ${inlineMax} then ${body} end`,
    sizeSql(shape, body, inlineMax),
    shape.correlationText,
    shape.createdText,
    headersSql(shape),
    shape.attempts,
    shape.traceText,
  ];
  if (!shape.order.unique) {
    columns.push(shape.order.isCreatedAt ? "null" : `${shape.order.column}::text`, "t.xmin", "t.cmin", "t.ctid");
  }
  return columns.join(", ");
}

/** The table as `t`, with the converted payload as `p` where only the conversion tells its size. */
export function eventFromSql(shape: TableShape, payloadBytesMax: number): string {
  const { kind, column, body } = shape.payload;
  if (kind !== "computed") return `${shape.quotedName} t`;
  // `offset 0` keeps the planner from pulling the conversion up and making it once per mention.
  const bounded = `case when pg_column_size(${column}) <= ${payloadBytesMax} then ${body} end`;
  return `${shape.quotedName} t cross join lateral (select ${bounded} as body offset 0) p`;
}

function sizeSql(shape: TableShape, body: string, inlineMax: number): string {
  const large = `when octet_length(${body}) > ${inlineMax} then octet_length(${body})`;
  if (shape.payload.kind !== "computed") return `case ${large} end`;
  const { column } = shape.payload;
  return `case when p.body is null and ${column} is not null then pg_column_size(${column}) ${large} end`;
}

function headersSql({ headersText }: TableShape): string {
  if (headersText === "null") return "null";
  return `case when octet_length(${headersText}) <= ${HEADERS_BYTES_MAX} then ${headersText}
    else '!' || octet_length(${headersText}) end`;
}
