import type { TailShape } from "./tail-shape.ts";

/** Selects rows by their positions, with the columns of PARKED_COLUMNS. */
export function copySql(shape: TailShape, positions: readonly number[]): string {
  const { events, position } = shape;
  const columns = [
    `${position}::numeric`,
    `${events.id}::text`,
    events.eventType,
    events.key,
    events.payloadBytes,
    headersSql(shape),
    events.correlationId,
    events.createdAt,
  ];
  return `select ${columns.join(", ")} from ${events.quotedName} t
where ${position} = any('{${positions.join(",")}}'::bigint[])`;
}

/**
 * The headers including the trace columns, as the event has them when it is read: a traceparent in the headers wins.
 * They are joined as text, because json accepts values that jsonb does not.
 */
function headersSql({ events }: TailShape): string {
  const { headersText, traceText } = events;
  if (traceText === "null") return `${headersText}::json`;
  const trace = `jsonb_strip_nulls(jsonb_build_object('traceparent', split_part(${traceText}, chr(10), 1),
    'tracestate', nullif(split_part(${traceText}, chr(10), 2), '')))::text`;
  const hasTrace = `coalesce(split_part(${traceText}, chr(10), 1), '') <> ''`;
  if (headersText === "null") return `(case when ${hasTrace} then ${trace} end)::json`;
  const text = `btrim(${headersText}, E' \\t\\r\\n')`;
  return `(case when not ${hasTrace} then ${headersText}
    when ${headersText} is null or ${text} in ('null', '{}') then ${trace}
    when left(${text}, 1) <> '{' or ${text} ~ '"traceparent"\\s*:' then ${headersText}
    else left(${text}, -1) || ', ' || substr(${trace}, 2) end)::json`;
}
