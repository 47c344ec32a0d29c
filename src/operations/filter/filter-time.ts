import { type FilterWord, wordError } from "./filter-words.ts";

const UNITS_MS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const TIME = /^(\d{4}-\d\d-\d\d)(?:T(\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?)(Z|[+-]\d\d:\d\d)?)?$/;
/** The range in which PostgreSQL and ISO 8601 write times alike. */
const EARLIEST_MS = Date.parse("0001-01-01T00:00:00Z");
const LATEST_MS = Date.parse("9999-12-31T23:59:59.999Z");
const TIME_FORMS = "2026-01-31, 2026-01-31T12:00 in UTC, 2026-01-31T12:00+01:00, or 15m, 2h, 1d for ago";

/** Parses a point in time, or how long ago it was. */
export function timeOf(word: FilterWord, now: Date): Date {
  const agoMs = durationMs(word.value);
  if (agoMs !== null) return inRange(word, now.getTime() - agoMs);
  const [whole, day, hour, zone = "Z"] = TIME.exec(word.value) ?? [];
  const timeMs = hour === undefined ? Date.parse(whole ?? "") : Date.parse(`${day}T${hour}${zone}`);
  if (!Number.isNaN(timeMs) && isDay(day ?? "")) return inRange(word, timeMs);
  throw wordError(word, `not a time: write ${TIME_FORMS}`);
}

/** `>5m` means older, so created before then; `<1h` means younger. */
export function ageOf(word: FilterWord, now: Date): { readonly side: "since" | "until"; readonly time: Date } {
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
