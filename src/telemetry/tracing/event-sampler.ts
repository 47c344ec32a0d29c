import type { Message } from "../../core/event.ts";

const RANGE = 2 ** 32;
const BASIS = 0x811c9dc5;
const NO_TRACE = "0".repeat(32);

/**
 * Chooses a share of the events by their ids, so that every attempt of an event is traced or none, and all of them in
 * one trace. Every event passes here when tracing is on.
 */
export function eventSampler(ratio: number): (id: string) => boolean {
  const below = ratio * RANGE;
  if (below <= 0) return () => false;
  if (below >= RANGE) return () => true;
  return (id) => scatter(id, BASIS) < below;
}

/** FNV-1a, then mixed: ids that differ in their last digit alone must not be chosen together. */
function scatter(text: string, basis: number): number {
  let sum = basis;
  for (let at = 0; at < text.length; at += 1) sum = Math.imul(sum ^ text.charCodeAt(at), 0x01000193);
  sum = Math.imul(sum ^ (sum >>> 16), 0x85ebca6b);
  sum = Math.imul(sum ^ (sum >>> 13), 0xc2b2ae35);
  return (sum ^ (sum >>> 16)) >>> 0;
}

/** Ids of two tables may be alike; type and time tell them apart. Never all zeros, which is no trace. */
export function traceIdOf({ event, topic }: Message): string {
  const text = `${event.id}\n${event.createdAt}\n${event.type}\n${topic}`;
  let traceId = "";
  for (let part = 1; part <= 4; part += 1) {
    traceId += scatter(text, BASIS + part)
      .toString(16)
      .padStart(8, "0");
  }
  return traceId === NO_TRACE ? `${traceId.slice(1)}1` : traceId;
}
