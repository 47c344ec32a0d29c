import { quotedValue } from "../kit/filter/filter-text.ts";
import { placeHash, segment } from "../kit/place.ts";

/** The addresses of the screens that others lead to. */
export function eventHref({ id, source }: { readonly id: string; readonly source: string }): string {
  return placeHash(`/events/${segment(id)}`, { source });
}

export function eventsHref(q: string): string {
  return placeHash("/events", { q });
}

export function keyFilter(key: string, source: string): string {
  return `key:${quotedValue(key)} source:${quotedValue(source)}`;
}

export function planHref(id: string): string {
  return placeHash(`/replays/${segment(id)}`);
}
