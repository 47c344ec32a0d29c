import { RelayError } from "../../core/errors.ts";
import { nearestName } from "../../routing/nearest-name.ts";
import type { DeadLetterChoice } from "../dead-letters/dead-letter-choice.ts";
import {
  EVENT_STATES,
  type EventFilter,
  type EventState,
  type HeaderFilter,
  type PayloadFilter,
} from "../events/event-filter.ts";
import { type FilterWord, filterWords, literalValue, quotedValue, wordError } from "./filter-words.ts";

/**
 * Fields of a filter such as `type:order.* key:42 age:<1h`. A bare word matches an id, a key or a correlation id, and
 * keys that contain it.
 */
export const FILTER_FIELDS = [
  "id",
  "key",
  "corr",
  "type",
  "state",
  "source",
  "destination",
  "since",
  "until",
  "age",
  "text",
  "error",
  "header",
  "payload",
  "group",
] as const;

type FilterField = (typeof FILTER_FIELDS)[number];

/** Fields whose value is used unchanged, with their property names. */
const PLAIN: Readonly<Partial<Record<FilterField, PlainName>>> = {
  corr: "correlationId",
  type: "type",
  source: "source",
  destination: "destination",
  text: "text",
  error: "error",
  group: "group",
};
type PlainName = "correlationId" | "type" | "source" | "destination" | "text" | "error" | "group";

type Parsed = { -readonly [Name in keyof EventFilter]: EventFilter[Name] };

/** Throws only CONFIG_INVALID, with the word and its position. */
export function parseEventFilter(text: string, now: Date): EventFilter {
  const filter: Parsed = {};
  const places = new Map<string, FilterWord>();
  const ids: string[] = [];
  for (const word of filterWords(text)) {
    const field = fieldOf(word);
    if (field === "id") ids.push(word.value);
    else if (field === "header") filter.headers = [...(filter.headers ?? []), headerOf(word)];
    else if (field === "payload") filter.payload = [...(filter.payload ?? []), payloadOf(word)];
    else if (field === "key") {
      const isPattern = !word.isLiteral && word.value.includes("*");
      setOnce(filter, places, word, isPattern ? "keyLike" : "key", word.value, "key");
    } else if (field === null) setOnce(filter, places, word, "word", word.value);
    else if (field === "state") setOnce(filter, places, word, "state", stateOf(word));
    else if (field === "since" || field === "until") setOnce(filter, places, word, field, timeOf(word, now));
    else if (field === "age") {
      const { side, time } = ageOf(word, now);
      setOnce(filter, places, word, side, time);
    } else setOnce(filter, places, word, PLAIN[field] ?? "text", word.value);
  }
  if (ids.length > 0) filter.ids = ids;
  return filter;
}

/** The same language for dead letters, where times are those of the last failure. */
export function parseDeadLetterChoice(text: string, now: Date): DeadLetterChoice {
  const { payload, state, ...choice } = parseEventFilter(text, now);
  const wrong = (isIt: (field: string) => boolean, problem: string) => {
    const word = filterWords(text).find(({ field }) => field !== null && isIt(field));
    return wordError(word ?? { text, at: 1 }, problem);
  };
  if (payload !== undefined) {
    throw wrong(
      (field) => field.startsWith(PAYLOAD_PREFIX),
      "dead letters cannot be filtered by payload fields: filter the events, with state:dead",
    );
  }
  if (state === undefined || state === "dead") return choice;
  throw wrong(
    (field) => field === "state",
    "dead letters have only the state dead: remove the state, or filter the events",
  );
}

/** Writes a filter as text. Parsed again, it means the same at any time. */
export function filterText(filter: EventFilter & DeadLetterChoice): string {
  const { headers = [], id, ids = [], key, keyLike, payload = [], since, until, state, word } = filter;
  const words = Object.entries(PLAIN).map(([field, name]) => [field, filter[name]] as const);
  return [
    ...(word === undefined ? [] : [quotedValue(word)]),
    ...[...(id === undefined ? [] : [id]), ...ids].map((it) => `id:${quotedValue(it)}`),
    ...(key === undefined ? [] : [`key:${literalValue(key)}`]),
    ...(keyLike === undefined ? [] : [`key:${keyLike}`]),
    ...words.flatMap(([field, value]) => (value === undefined ? [] : [`${field}:${quotedValue(value)}`])),
    ...headers.map(headerText),
    ...payload.map(payloadText),
    ...(state === undefined ? [] : [`state:${state}`]),
    ...(since === undefined ? [] : [`since:${since.toISOString()}`]),
    ...(until === undefined ? [] : [`until:${until.toISOString()}`]),
  ].join(" ");
}

/** Combines a text filter with separate parameters; both apply. */
export function bothFilters<Filter extends object>(inWords: Filter, byItself: Filter): Filter {
  const given = Object.entries(byItself).filter(([, value]) => value !== undefined);
  const twice = given.find(([name]) => Object.hasOwn(inWords, name));
  if (twice === undefined) return { ...inWords, ...Object.fromEntries(given) };
  throw new RelayError(
    "CONFIG_INVALID",
    `${twice[0]} is set twice, in the filter and as a parameter: keep one of them`,
  );
}

function fieldOf(word: FilterWord): FilterField | null {
  const { field, isQuoted, text, value } = word;
  if (field === null) return null;
  const known = field.startsWith(PAYLOAD_PREFIX) ? "payload" : FILTER_FIELDS.find((it) => it === field);
  if (known === undefined) {
    const nearest = nearestName(field, FILTER_FIELDS, 2);
    const hint = nearest === undefined ? `the fields are ${FILTER_FIELDS.join(", ")}.` : `did you mean ${nearest}:?`;
    throw wordError(
      word,
      `${JSON.stringify(field)} is not a field; ${hint} To search for the word itself, quote it: ${quotedValue(text)}`,
    );
  }
  if (value !== "" || isQuoted) return known;
  throw wordError(
    word,
    `the value after the colon is missing: write ${field}:value, or ${field}:"" for an empty value`,
  );
}

/** All conditions must match one event, so a second value for a field would match nothing or be a mistake. */
function setOnce<Name extends keyof Parsed>(
  filter: Parsed,
  places: Map<string, FilterWord>,
  word: FilterWord,
  name: Name,
  value: Parsed[Name],
  place: string = name,
): void {
  const before = places.get(place);
  if (before !== undefined) {
    const first = `${JSON.stringify(before.text)} at character ${before.at}`;
    const cure = name === "word" ? "put words that belong together in quotes, or keep one" : "keep one of the two";
    throw wordError(word, `${first} sets the same field: ${cure}`);
  }
  places.set(place, word);
  filter[name] = value;
}

function stateOf(word: FilterWord): EventState {
  const state = EVENT_STATES.find((it) => it === word.value);
  if (state !== undefined) return state;
  throw wordError(word, `unknown state; use ${EVENT_STATES.join(", ")}`);
}

/** Prefix of a field's path: `payload.order.id:4711`. */
const PAYLOAD_PREFIX = "payload.";

/** Parses `header:tenant=acme`, or `header:tenant` for any value. */
function headerOf(word: FilterWord): HeaderFilter {
  const cut = word.value.indexOf("=");
  const name = cut < 0 ? word.value : word.value.slice(0, cut);
  if (name === "") throw wordError(word, "name the header: write header:tenant=acme, or header:tenant for any value");
  return { name, value: cut < 0 ? null : asValue(word, word.value.slice(cut + 1)) };
}

/** Parses `payload.order.id:4711`. */
function payloadOf(word: FilterWord): PayloadFilter {
  const path = (word.field ?? "").slice(PAYLOAD_PREFIX.length).split(".");
  if (path.some((name) => name === "")) {
    throw wordError(
      word,
      `name the field of the payload: write payload.order:4711, or text:${quotedValue(word.value)} to search the whole payload`,
    );
  }
  return { path, ...asValue(word, word.value) };
}

/** Writes a header condition as a filter. */
function headerText({ name, value }: HeaderFilter): string {
  if (value === null) return `header:${quotedValue(name)}`;
  if (value.isPattern) return `header:${name}=${value.value}`;
  return `header:${literalValue(`${name}=${value.value}`)}`;
}

/** Writes a payload condition as a filter. */
function payloadText({ isPattern, path, value }: PayloadFilter): string {
  const name = path.join(".").replace(/[\s"\\:]/g, "\\$&");
  return `${PAYLOAD_PREFIX}${name}:${isPattern ? value : literalValue(value)}`;
}

function asValue({ isLiteral }: FilterWord, value: string) {
  return { value, isPattern: !isLiteral && value.includes("*") };
}

const UNITS_MS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const TIME = /^(\d{4}-\d\d-\d\d)(?:T(\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?)(Z|[+-]\d\d:\d\d)?)?$/;
/** The range in which PostgreSQL and ISO 8601 write times alike. */
const EARLIEST_MS = Date.parse("0001-01-01T00:00:00Z");
const LATEST_MS = Date.parse("9999-12-31T23:59:59.999Z");
const TIME_FORMS = "2026-01-31, 2026-01-31T12:00 in UTC, 2026-01-31T12:00+01:00, or 15m, 2h, 1d for ago";

/** Parses a point in time, or how long ago it was. */
function timeOf(word: FilterWord, now: Date): Date {
  const agoMs = durationMs(word.value);
  if (agoMs !== null) return inRange(word, now.getTime() - agoMs);
  const [whole, day, hour, zone = "Z"] = TIME.exec(word.value) ?? [];
  const timeMs = hour === undefined ? Date.parse(whole ?? "") : Date.parse(`${day}T${hour}${zone}`);
  if (!Number.isNaN(timeMs) && isDay(day ?? "")) return inRange(word, timeMs);
  throw wordError(word, `not a time: write ${TIME_FORMS}`);
}

/** `>5m` means older, so created before then; `<1h` means younger. */
function ageOf(word: FilterWord, now: Date): { readonly side: "since" | "until"; readonly time: Date } {
  const agoMs = durationMs(word.value.slice(1));
  const sign = word.value.charAt(0);
  if (agoMs === null || (sign !== ">" && sign !== "<")) {
    throw wordError(word, "not an age: write age:>5m for older than five minutes, age:<1h for younger than an hour");
  }
  return { side: sign === ">" ? "until" : "since", time: inRange(word, now.getTime() - agoMs) };
}

function durationMs(text: string): number | null {
  const [, number, unit = ""] = /^(\d{1,9})([smhd])$/.exec(text) ?? [];
  return number === undefined ? null : Number(number) * (UNITS_MS[unit] ?? 0);
}

/** The 30th of February is a typing error, not the 2nd of March. */
function isDay(day: string): boolean {
  const timeMs = Date.parse(`${day}T00:00Z`);
  return !Number.isNaN(timeMs) && new Date(timeMs).toISOString().startsWith(day);
}

function inRange(word: FilterWord, timeMs: number): Date {
  if (timeMs >= EARLIEST_MS && timeMs <= LATEST_MS) return new Date(timeMs);
  throw wordError(word, "the time is outside the years 1 to 9999");
}
