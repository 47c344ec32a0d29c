import { quotedValue, typedWords } from "./filter-text.ts";

export interface Suggestion {
  /** What the word becomes. */
  readonly text: string;
  readonly help: string;
  /** A field still wants its value. */
  readonly isWhole: boolean;
}

interface Suggestions {
  /** The word that is being written. */
  readonly start: number;
  readonly end: number;
  readonly items: readonly Suggestion[];
}

/** The fields with what they find and how they are written. */
export const FILTER_FIELDS: readonly (readonly [field: string, help: string, example: string])[] = [
  ["state", "how it stands", "state:dead"],
  ["type", "its type; * is any run of characters", "type:order.*"],
  ["key", "its key: all events of one thing", "key:42"],
  ["corr", "its correlation id", "corr:abc-123"],
  ["id", "its id; several may be given", "id:7f0c…"],
  ["source", "the table it was written to", "source:shop.outbox"],
  ["age", "older or younger than", "age:>5m"],
  ["since", "written from then on", "since:2026-01-31"],
  ["until", "written before then", "until:2026-01-31T12:00"],
  ["text", "a piece of its payload or error", 'text:"out of stock"'],
  ["group", "dead with this error", "group:0123456789ab"],
];

export const EVENT_STATES = ["pending", "retrying", "parked", "dead", "delivered", "discarded"] as const;

const TIMES = ["5m", "1h", "1d", "7d"];
const ITEMS_MAX = 8;

/** Values that are known to be there: names of sources, types on the page. */
export type KnownValues = Readonly<Record<string, readonly string[]>>;

/** What the word at the caret may become. */
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

/** The text with a suggestion taken, and where the caret goes. */
export function withSuggestion(text: string, { start, end }: Suggestions, it: Suggestion): readonly [string, number] {
  const rest = text.slice(end).trimStart();
  const before = `${text.slice(0, start)}${it.text}${it.isWhole ? " " : ""}`;
  return [`${before}${rest === "" || it.isWhole ? rest : ` ${rest}`}`, before.length];
}

function fieldsLike(typed: string, text: string): readonly Suggestion[] {
  const used = new Set(typedWords(text).map(({ field }) => field));
  return FILTER_FIELDS.filter(
    ([field]) => field.startsWith(typed.toLowerCase()) && (field === "id" || !used.has(field)),
  )
    .slice(0, ITEMS_MAX)
    .map(([field, help]) => ({ text: `${field}:`, help, isWhole: false }));
}

function valuesOf(field: string, known: KnownValues): readonly string[] {
  if (field === "state") return known.state ?? EVENT_STATES;
  if (field === "age") return TIMES.flatMap((it) => [`>${it}`, `<${it}`]);
  if (field === "since" || field === "until") return TIMES;
  return known[field] ?? [];
}

/** Signs that mean something there. */
function isSafe(field: string): boolean {
  return field === "age" || field === "since" || field === "until";
}
