import { recall, remember } from "./browser-memory.ts";
import { createStore } from "./store.ts";

/** `local` is the browser's zone, else an IANA name such as `UTC` or `Europe/Berlin`. */
const NAME = "time-zone";
const LOCAL = "local";

export const timeZone = createStore<string>(known(recall(NAME)));

export function setTimeZone(zone: string): void {
  remember(NAME, known(zone));
  timeZone.set(known(zone));
}

/** Local and UTC first, then all zones that the browser supports. */
export function timeZones(): readonly (readonly [zone: string, text: string])[] {
  const own = new Intl.DateTimeFormat().resolvedOptions().timeZone;
  const others = Intl.supportedValuesOf("timeZone").filter((it) => it !== "UTC");
  return [[LOCAL, `Local (${own})`], ["UTC", "UTC"], ...others.map((it) => [it, it] as const)];
}

/** Local date and time in the zone: `2026-01-31T12:00:00`. */
export function clockIn(zone: string, at: Date): string {
  const parts = new Map(
    formatOf(zone)
      .formatToParts(at)
      .map(({ type, value }) => [type, value]),
  );
  const part = (name: Intl.DateTimeFormatPartTypes) => parts.get(name) ?? "";
  const day = `${part("year").padStart(4, "0")}-${part("month")}-${part("day")}`;
  return `${day}T${part("hour")}:${part("minute")}:${part("second")}`;
}

/** Parses a local time. A time skipped by daylight saving moves forward; an ambiguous time is one of the two. */
export function timeIn(zone: string, clock: string): Date | null {
  const shown = Date.parse(`${clock}Z`);
  if (Number.isNaN(shown)) return null;
  const offset = (at: number) => Date.parse(`${clockIn(zone, new Date(at))}Z`) - Math.floor(at / 1_000) * 1_000;
  const first = shown - offset(shown);
  return new Date(shown - offset(first));
}

const formats = new Map<string, Intl.DateTimeFormat>();

function formatOf(zone: string): Intl.DateTimeFormat {
  const before = formats.get(zone);
  if (before !== undefined) return before;
  const two = "2-digit" as const;
  const made = new Intl.DateTimeFormat("en-GB", {
    ...(zone === LOCAL ? {} : { timeZone: zone }),
    ...{ year: "numeric", month: two, day: two, hour: two, minute: two, second: two, hourCycle: "h23" },
  });
  formats.set(zone, made);
  return made;
}

/** The stored value may not be a valid zone. */
function known(zone: string | null): string {
  if (zone === null || zone === LOCAL) return LOCAL;
  try {
    new Intl.DateTimeFormat("en", { timeZone: zone });
    return zone;
  } catch {
    return LOCAL;
  }
}
