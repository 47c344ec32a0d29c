import { quoteArray, quoteLiteral } from "../postgres/identifiers.ts";

export const EVENT_STATES = ["pending", "retrying", "parked", "dead", "delivered", "discarded"] as const;

/**
 * `pending` waits for its turn, `retrying` has failed and is tried again, `parked` waits behind one that failed, `dead`
 * waits for a person, `discarded` was given up by one.
 */
export type EventState = (typeof EVENT_STATES)[number];

export interface EventFilter {
  readonly source?: string | undefined;
  /** `*` stands for any run of characters. */
  readonly type?: string | undefined;
  readonly key?: string | undefined;
  readonly correlationId?: string | undefined;
  readonly id?: string | undefined;
  readonly ids?: readonly string[] | undefined;
  readonly state?: EventState | undefined;
  /** By the time of creation: from, inclusive, and to, exclusive. */
  readonly since?: Date | undefined;
  readonly until?: Date | undefined;
  /** An id, a key or a correlation id. */
  readonly word?: string | undefined;
  /** Somewhere in the payload. */
  readonly text?: string | undefined;
  /** Dead, with an error of this fingerprint. */
  readonly group?: string | undefined;
}

/** Whether the text can be an id of that type: a wrong one finds nothing, and is no error. */
export function isId(idType: string, text: string): boolean {
  if (text.includes("\0")) return false;
  if (idType === "uuid") return /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i.test(text);
  const bits = { smallint: 15n, integer: 31n, bigint: 63n }[idType];
  if (bits === undefined) return true;
  return /^-?\d{1,19}$/.test(text) && BigInt.asIntN(Number(bits) + 1, BigInt(text)) === BigInt(text);
}

/** An id that was written down as text, by its column's type; null for what is none, since also people write. */
export function idOfText(idType: string, text: string): string {
  if (idType === "uuid") return `(case when ${text} ~ '^[0-9a-fA-F-]{36}$' then ${text}::uuid end)`;
  const digits = { smallint: 4, integer: 9, bigint: 18 }[idType];
  if (digits === undefined) return `${text}::${idType}`;
  return `(case when ${text} ~ '^-?[0-9]{1,${digits}}$' then ${text}::${idType} end)`;
}

export function typeMatches(column: string, pattern: string): string {
  if (!pattern.includes("*")) return `${column} = ${quoteLiteral(pattern)}`;
  const like = pattern.replace(/[\\%_]/g, "\\$&").replaceAll("*", "%");
  return `${column} like ${quoteLiteral(like)}`;
}

export function pipelineIn(column: string, { pipelines }: { readonly pipelines: readonly string[] }): string {
  return `${column} = any(${quoteArray(pipelines)}::text[])`;
}

/** Years that the database writes otherwise than ISO 8601 are as good as the ends of time. */
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

/** By its bytes, whatever they are: nothing has to be a text, and none is changed to look alike. */
export function payloadHolds(payloadBytes: string, text: string): string {
  return `position(convert_to(${quoteLiteral(text)}, 'UTF8') in ${payloadBytes}) > 0`;
}
