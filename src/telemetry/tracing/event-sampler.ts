import type { Message } from "../../core/event.ts";

const RANGE = 2 ** 32;
const BASIS = 0x811c9dc5;
const NO_TRACE = "0".repeat(32);

/**
 * Samples a share of the events by their ids, so that either all attempts of an event are traced or none, and all of
 * them in one trace. Runs for every event while tracing is on.
 */
export function eventSampler(ratio: number): (id: string) => boolean {
  const below = ratio * RANGE;
  if (below <= 0) return () => false;
  if (below >= RANGE) return () => true;
  return (id) => hashOf(id, BASIS) < below;
}

/** FNV-1a with a final mix: ids that differ only in the last digit must not be sampled together. */
function hashOf(text: string, basis: number): number {
  let sum = basis;
  for (let at = 0; at < text.length; at += 1) sum = Math.imul(sum ^ text.charCodeAt(at), 0x01000193);
  sum = Math.imul(sum ^ (sum >>> 16), 0x85ebca6b);
  sum = Math.imul(sum ^ (sum >>> 13), 0xc2b2ae35);
  return (sum ^ (sum >>> 16)) >>> 0;
}

/** Two tables can hold the same id, so type and time enter too. Never all zeros, which W3C reserves for "no trace". */
export function traceIdOf({ event, topic }: Message): string {
  const text = `${event.id}\n${event.createdAt}\n${event.type}\n${topic}`;
  let traceId = "";
  for (let part = 1; part <= 4; part += 1) {
    traceId += hashOf(text, BASIS + part)
      .toString(16)
      .padStart(8, "0");
  }
  return traceId === NO_TRACE ? `${traceId.slice(1)}1` : traceId;
}
