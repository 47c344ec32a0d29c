import { RelayError } from "../core/errors.ts";
import { nearestName } from "../routing/nearest-name.ts";
import type { DeadLetterChoice } from "./dead-letter-choice.ts";
import { EVENT_STATES, type EventFilter, type EventState } from "./event-filter.ts";
import { ageOf, timeOf } from "./filter-time.ts";
import { type FilterWord, filterWords, quotedValue, wordError } from "./filter-words.ts";

/** What a person may ask for: `type:order.* key:42 age:<1h`. A bare word looks for an id, a key or a correlation id. */
export const FILTER_FIELDS = [
  "id",
  "key",
  "corr",
  "type",
  "state",
  "source",
  "since",
  "until",
  "age",
  "text",
  "group",
] as const;

type FilterField = (typeof FILTER_FIELDS)[number];

/** The fields whose value is taken as it is, and what they are called in a filter. */
const PLAIN: Readonly<Partial<Record<FilterField, "key" | "correlationId" | "type" | "source" | "text" | "group">>> = {
  key: "key",
  corr: "correlationId",
  type: "type",
  source: "source",
  text: "text",
  group: "group",
};

type Parsed = { -readonly [Name in keyof EventFilter]: EventFilter[Name] };

/** Throws CONFIG_INVALID and nothing else, with the word and its place. */
export function parseEventFilter(text: string, now: Date): EventFilter {
  const filter: Parsed = {};
  const places = new Map<string, FilterWord>();
  const ids: string[] = [];
  for (const word of filterWords(text)) {
    const field = fieldOf(word);
    if (field === "id") ids.push(word.value);
    else if (field === null) setOnce(filter, places, word, "word", word.value);
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

/** The same words over dead letters, where times are those of the last failure. */
export function parseDeadLetterChoice(text: string, now: Date): DeadLetterChoice {
  const { state, ...choice } = parseEventFilter(text, now);
  if (state === undefined || state === "dead") return choice;
  const word = filterWords(text).find(({ field }) => field === "state");
  throw wordError(word ?? { text, at: 1 }, "dead letters are dead: leave the state out, or look among the events");
}

/** The filter as a person would write it. Read again, it means the same, whenever that is. */
export function filterText(filter: EventFilter & DeadLetterChoice): string {
  const { id, ids = [], since, until, state, word } = filter;
  const words = Object.entries(PLAIN).map(([field, name]) => [field, filter[name]] as const);
  return [
    ...(word === undefined ? [] : [quotedValue(word)]),
    ...[...(id === undefined ? [] : [id]), ...ids].map((it) => `id:${quotedValue(it)}`),
    ...words.flatMap(([field, value]) => (value === undefined ? [] : [`${field}:${quotedValue(value)}`])),
    ...(state === undefined ? [] : [`state:${state}`]),
    ...(since === undefined ? [] : [`since:${since.toISOString()}`]),
    ...(until === undefined ? [] : [`until:${until.toISOString()}`]),
  ].join(" ");
}

/** What is asked for in words and what is asked for by itself, both. */
export function bothFilters<Filter extends object>(inWords: Filter, byItself: Filter): Filter {
  const given = Object.entries(byItself).filter(([, value]) => value !== undefined);
  const twice = given.find(([name]) => Object.hasOwn(inWords, name));
  if (twice === undefined) return { ...inWords, ...Object.fromEntries(given) };
  throw new RelayError(
    "CONFIG_INVALID",
    `${twice[0]} is asked for twice, in the filter and beside it: keep one of them`,
  );
}

function fieldOf(word: FilterWord): FilterField | null {
  const { field, isQuoted, text, value } = word;
  if (field === null) return null;
  const known = FILTER_FIELDS.find((it) => it === field);
  if (known === undefined) {
    const nearest = nearestName(field, FILTER_FIELDS, 2);
    const hint = nearest === undefined ? `the fields are ${FILTER_FIELDS.join(", ")}.` : `did you mean ${nearest}:?`;
    throw wordError(
      word,
      `${JSON.stringify(field)} is no field; ${hint} To look for the word itself, quote it: ${quotedValue(text)}`,
    );
  }
  if (value !== "" || isQuoted) return known;
  throw wordError(word, `nothing stands behind the colon: write ${known}:value, or ${known}:"" for an empty one`);
}

/** All words must be true of one event, so a second value would find nothing, or be an oversight. */
function setOnce<Name extends keyof Parsed>(
  filter: Parsed,
  places: Map<string, FilterWord>,
  word: FilterWord,
  name: Name,
  value: Parsed[Name],
): void {
  const before = places.get(name);
  if (before !== undefined) {
    const first = `${JSON.stringify(before.text)} at character ${before.at}`;
    const cure = name === "word" ? "put words that belong together into quotes, or keep one" : "keep one of the two";
    throw wordError(word, `${first} says the same already: ${cure}`);
  }
  places.set(name, word);
  filter[name] = value;
}

function stateOf(word: FilterWord): EventState {
  const state = EVENT_STATES.find((it) => it === word.value);
  if (state !== undefined) return state;
  throw wordError(word, `there is no such state: ${EVENT_STATES.join(", ")}`);
}
