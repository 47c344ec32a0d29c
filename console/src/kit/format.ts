import { clockIn, timeZone } from "./time-zone.ts";

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** Two units at most: `850 ms`, `4.2 s`, `3 min 5 s`, `2 h 10 min`, `5 d 3 h`. */
export function durationText(ms: number | null): string {
  if (ms === null || !Number.isFinite(ms)) return "–";
  const size = Math.abs(ms);
  if (size < SECOND) return `${Math.round(size)} ms`;
  if (size < 10 * SECOND) return `${(size / SECOND).toFixed(1)} s`;
  if (size < MINUTE) return `${Math.round(size / SECOND)} s`;
  if (size < HOUR) return twoUnits(size, MINUTE, "min", SECOND, "s");
  if (size < DAY) return twoUnits(size, HOUR, "h", MINUTE, "min");
  return twoUnits(size, DAY, "d", HOUR, "h");
}

function twoUnits(ms: number, big: number, bigName: string, small: number, smallName: string): string {
  const whole = Math.floor(ms / big);
  const rest = Math.floor((ms % big) / small);
  return rest === 0 ? `${whole} ${bigName}` : `${whole} ${bigName} ${rest} ${smallName}`;
}

/** How long ago, in one unit, for lists. */
export function agoText(at: number, now: number): string {
  const ms = now - at;
  // Two clocks differ a little: a recent time must not be shown as in the future.
  if (Math.abs(ms) < 2 * SECOND) return "just now";
  return ms < 0 ? `in ${oneUnit(-ms)}` : `${oneUnit(ms)} ago`;
}

function oneUnit(ms: number): string {
  if (ms < MINUTE) return `${Math.round(ms / SECOND)} s`;
  if (ms < HOUR) return `${Math.round(ms / MINUTE)} min`;
  if (ms < 2 * DAY) return `${Math.round(ms / HOUR)} h`;
  return `${Math.round(ms / DAY)} d`;
}

/** With thin spaces between the thousands, which no locale mistakes for a decimal point. */
export function countText(count: number | string | null): string {
  if (count === null) return "–";
  const [whole = "", fraction] = String(count).split(".");
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, "\u202f");
  return fraction === undefined ? grouped : `${grouped}.${fraction}`;
}

/** For tiles and axes, where a figure must stay narrow: `12.4k`, `3.1M`. */
export function shortCount(count: number | null): string {
  if (count === null) return "–";
  const size = Math.abs(count);
  if (size < 10_000) return countText(Math.round(count));
  if (size < 1_000_000) return `${trimmed(count / 1_000, size < 100_000)}k`;
  if (size < 1_000_000_000) return `${trimmed(count / 1_000_000, true)}M`;
  return `${trimmed(count / 1_000_000_000, true)}G`;
}

function trimmed(value: number, hasFraction: boolean): string {
  return value.toFixed(hasFraction ? 1 : 0).replace(/\.0$/, "");
}

/** Events per second; small rates keep one decimal. */
export function rateText(perSecond: number | null): string {
  if (perSecond === null) return "–";
  if (perSecond === 0) return "0";
  if (perSecond < 0.1) return "< 0.1";
  return perSecond < 10 ? trimmed(perSecond, true) : shortCount(perSecond);
}

export function bytesText(bytes: number | null): string {
  if (bytes === null) return "–";
  if (bytes < 1024) return `${bytes} B`;
  const units = ["KiB", "MiB", "GiB", "TiB"];
  let value = bytes;
  let at = -1;
  while (value >= 1024 && at < units.length - 1) {
    value /= 1024;
    at += 1;
  }
  return `${value.toFixed(value < 10 ? 1 : 0)} ${units[at]}`;
}

/** In the selected time zone, to the second. */
export function timeText(at: string | number): string {
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return String(at);
  return clockIn(timeZone.get(), date).replace("T", " ");
}

export function clockText(at: string | number): string {
  return timeText(at).slice(11);
}

/** `1 event`, `2 events`. */
export function plural(count: number, one: string, many = `${one}s`): string {
  return `${countText(count)} ${count === 1 ? one : many}`;
}
