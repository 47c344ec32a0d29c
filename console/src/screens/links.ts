import { literalValue, quotedValue } from "../kit/filter/filter-text.ts";
import { placeHash, segment } from "../kit/place.ts";

/** Addresses of screens that other screens link to. */
export function eventHref({ id, source }: { readonly id: string; readonly source: string }): string {
  return placeHash(`/events/${segment(id)}`, { source });
}

export function eventsHref(q: string): string {
  return placeHash("/events", { q });
}

export function keyFilter(key: string, source: string): string {
  return `key:${literalValue(key)} source:${quotedValue(source)}`;
}

export function planHref(id: string): string {
  return placeHash(`/replays/${segment(id)}`);
}

export function destinationHref(name: string): string {
  return placeHash(`/destinations/${segment(name)}`);
}

export function pipelineHref(pipeline: string): string {
  return placeHash("/pipelines", { open: pipeline });
}

export function correlationHref(id: string): string {
  return placeHash(`/correlations/${segment(id)}`);
}
