import { quoteArray, quoteLiteral } from "../../postgres/identifiers.ts";

/** All states of an event. */
export const EVENT_STATES = ["pending", "retrying", "parked", "dead", "unrouted", "delivered", "discarded"] as const;

/**
 * `pending` waits for delivery, `retrying` has failed and is retried, `parked` waits behind a failed event, `dead`
 * waits for an operator, `unrouted` matches no route, `discarded` was given up by an operator. The readers of a log pass
 * what matches no route: that is no delivery.
 */
export type EventState = (typeof EVENT_STATES)[number];

/** Selects events. All given conditions must match. */
export interface EventFilter {
  readonly source?: string | undefined;
  /** Where the routes lead it to, as they are now. */
  readonly destination?: string | undefined;
  /** `*` matches any characters. */
  readonly type?: string | undefined;
  readonly key?: string | undefined;
  /** A key in which `*` matches any characters. */
  readonly keyLike?: string | undefined;
  readonly correlationId?: string | undefined;
  readonly id?: string | undefined;
  readonly ids?: readonly string[] | undefined;
  readonly state?: EventState | undefined;
  /** Range of the creation time: `since` is inclusive, `until` exclusive. */
  readonly since?: Date | undefined;
  readonly until?: Date | undefined;
  /** An id, a key, a correlation id, or a part of a key. */
  readonly word?: string | undefined;
  /** Text anywhere in the payload. */
  readonly text?: string | undefined;
  /** Text anywhere in the error of a failed, undelivered event, ignoring case. */
  readonly error?: string | undefined;
  readonly headers?: readonly HeaderFilter[] | undefined;
  readonly payload?: readonly PayloadFilter[] | undefined;
  /** Dead, with an error of one of these fingerprints, separated by commas. */
  readonly group?: string | undefined;
}

/** Condition on a value: `*` matches any characters, unless it was quoted. */
interface ValueFilter {
  readonly value: string;
  readonly isPattern: boolean;
}

/** A header with that name, ignoring case, and that value; null matches any value. */
export interface HeaderFilter {
  readonly name: string;
  readonly value: ValueFilter | null;
}

/** A field of a JSON payload. Matches any element of arrays on its path. */
export interface PayloadFilter extends ValueFilter {
  readonly path: readonly string[];
}

/** Whether the text can be an id of that type: an invalid one matches nothing and is not an error. */
export function isId(idType: string, text: string): boolean {
  if (text.includes("\0")) return false;
  if (idType === "uuid") return /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i.test(text);
  const bits = { smallint: 15n, integer: 31n, bigint: 63n }[idType];
  if (bits === undefined) return true;
  return /^-?\d{1,19}$/.test(text) && BigInt.asIntN(Number(bits) + 1, BigInt(text)) === BigInt(text);
}

/** Casts a textual id to its column's type; null for an invalid one, since people type ids too. */
export function idOfText(idType: string, text: string): string {
  if (idType === "uuid") return `(case when ${text} ~ '^[0-9a-fA-F-]{36}$' then ${text}::uuid end)`;
  const digits = { smallint: 4, integer: 9, bigint: 18 }[idType];
  if (digits === undefined) return `${text}::${idType}`;
  return `(case when ${text} ~ '^-?[0-9]{1,${digits}}$' then ${text}::${idType} end)`;
}

/** The SQL condition that a type matches a pattern. */
export function typeMatches(column: string, pattern: string): string {
  if (!pattern.includes("*")) return `${column} = ${quoteLiteral(pattern)}`;
  return `${column} like ${quoteLiteral(likeForm(pattern).replaceAll("*", "%"))}`;
}

/** Whether the column contains the text, ignoring case. Null contains nothing. */
export function holdsText(column: string, text: string): string {
  return `coalesce(${column} ilike ${quoteLiteral(`%${likeForm(text)}%`)}, false)`;
}

function likeForm(text: string): string {
  return text.replace(/[\\%_]/g, "\\$&");
}

/** Over a jsonb expression; anything but an object has no headers. */
export function headerMatches(headersJson: string, { name, value }: HeaderFilter): string {
  const conditions = [`lower(e.key) = lower(${quoteLiteral(name)})`];
  if (value !== null)
    conditions.push(value.isPattern ? typeMatches("e.value", value.value) : `e.value = ${quoteLiteral(value.value)}`);
  const exists = `exists (select from jsonb_each_text(${headersJson}) e where ${conditions.join(" and ")})`;
  return `(case when jsonb_typeof(${headersJson}) = 'object' then ${exists} else false end)`;
}

/** The SQL condition that a pipeline is one of the source's. */
export function pipelineIn(column: string, { pipelines }: { readonly pipelines: readonly string[] }): string {
  return `${column} = any(${quoteArray(pipelines)}::text[])`;
}

/** The SQL condition that a pipeline reads the row: a key that is parked in one pipeline continues in the others. */
export function ofReader(
  column: string,
  source: { readonly pipelines: readonly string[]; readonly reader: string | null },
): string {
  return source.reader === null ? pipelineIn(column, source) : `${column} = ${source.reader}`;
}

/** Years outside ISO 8601's four digits are replaced by infinity. */
export function timeConditions(column: string, { since, until }: Pick<EventFilter, "since" | "until">): string[] {
  const literal = (time: Date) => {
    const year = time.getUTCFullYear();
    return year < 1 ? "'-infinity'" : year > 9999 ? "'infinity'" : quoteLiteral(time.toISOString());
  };
  return [
    ...(since === undefined ? [] : [`${column} >= ${literal(since)}`]),
    ...(until === undefined ? [] : [`${column} < ${literal(until)}`]),
  ];
}

/** Compares bytes, so the payload need not be valid text. */
export function payloadHolds(payloadBytes: string, text: string): string {
  return `position(convert_to(${quoteLiteral(text)}, 'UTF8') in ${payloadBytes}) > 0`;
}
