import { quotedValue, typedWords } from "./filter-text.ts";

export interface Suggestion {
  /** The text that replaces the term. */
  readonly text: string;
  readonly help: string;
  /** False for a field that still needs a value. */
  readonly isWhole: boolean;
}

interface Suggestions {
  /** Offset of the term at the caret. */
  readonly start: number;
  readonly end: number;
  readonly items: readonly Suggestion[];
}

/** The filter fields with their meaning and an example. */
export const FILTER_FIELDS: readonly (readonly [field: string, help: string, example: string])[] = [
  ["state", "state of the event", "state:dead"],
  ["type", "event type; * matches any characters", "type:order.*"],
  ["key", "key; * matches any characters", "key:42*"],
  ["corr", "correlation id", "corr:abc-123"],
  ["id", "event id; can be repeated", "id:7f0c…"],
  ["source", "source table", "source:shop.outbox"],
  ["destination", "where the routes lead it to", "destination:crm"],
  ["age", "older or newer than", "age:>5m"],
  ["since", "written at or after", "since:2026-01-31"],
  ["until", "written before", "until:2026-01-31T12:00"],
  ["error", "part of the error of a retrying or dead event", 'error:"no such customer"'],
  ["header", "a header with this value, or with any value", "header:tenant=acme"],
  ["payload.", "field of a JSON payload", "payload.order:4711"],
  ["text", "part of the payload; case-sensitive", 'text:"out of stock"'],
  ["group", "dead letters with this error", "group:0123456789ab"],
];

export const EVENT_STATES = ["pending", "retrying", "parked", "dead", "unrouted", "delivered", "discarded"] as const;

/** Fields that can occur more than once in a filter. */
const REPEATED = new Set(["id", "header", "payload."]);
const TIMES = ["5m", "1h", "1d", "7d"];
const ITEMS_MAX = 8;

/** Known values by field: names of sources, event types on the page. */
export type KnownValues = Readonly<Record<string, readonly string[]>>;

/** Suggestions for the term at the caret. */
export function suggestionsAt(text: string, caret: number, known: KnownValues): Suggestions {
  const word = typedWords(text).find(({ start, end }) => start < caret && caret <= end);
  if (word === undefined) return { start: caret, end: caret, items: fieldsLike("", text) };
  const { start, end, field, value } = word;
  if (field === null) return { start, end, items: fieldsLike(value, text) };
  const items = valuesOf(field, known)
    .filter((it) => it !== value && it.toLowerCase().includes(value.toLowerCase()))
    .slice(0, ITEMS_MAX)
    .map((it) => ({ text: `${field}:${isSafe(field) ? it : quotedValue(it)}`, help: "", isWhole: true }));
  return { start, end, items };
}

/** The text with the suggestion inserted, and the new position of the caret. */
export function withSuggestion(text: string, { start, end }: Suggestions, it: Suggestion): readonly [string, number] {
  const rest = text.slice(end).trimStart();
  const before = `${text.slice(0, start)}${it.text}${it.isWhole ? " " : ""}`;
  return [`${before}${rest === "" || it.isWhole ? rest : ` ${rest}`}`, before.length];
}

function fieldsLike(typed: string, text: string): readonly Suggestion[] {
  const used = new Set(typedWords(text).map(({ field }) => field));
  return FILTER_FIELDS.filter(
    ([field]) => field.startsWith(typed.toLowerCase()) && (REPEATED.has(field) || !used.has(field)),
  )
    .slice(0, ITEMS_MAX)
    .map(([field, help]) => ({ text: field.endsWith(".") ? field : `${field}:`, help, isWhole: false }));
}

function valuesOf(field: string, known: KnownValues): readonly string[] {
  if (field === "state") return known.state ?? EVENT_STATES;
  if (field === "age") return TIMES.flatMap((it) => [`>${it}`, `<${it}`]);
  if (field === "since" || field === "until") return TIMES;
  return known[field] ?? [];
}

/** Values of these fields need no quotes: their special characters are operators. */
function isSafe(field: string): boolean {
  return field === "age" || field === "since" || field === "until";
}
