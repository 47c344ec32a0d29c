import { hash } from "node:crypto";
import type { Message } from "../../core/event.ts";

const RANGE = 2 ** 32;

/**
 * Chooses a share of the events by their ids, so that every attempt of an event is traced or none, and all of them in
 * one trace. Every event passes here when tracing is on.
 */
export function eventSampler(ratio: number): (id: string) => boolean {
  const below = ratio * RANGE;
  if (below <= 0) return () => false;
  if (below >= RANGE) return () => true;
  return (id) => scatter(id) < below;
}

/** FNV-1a, then mixed: ids that differ in their last digit alone must not be chosen together. */
function scatter(id: string): number {
  let sum = 0x811c9dc5;
  for (let at = 0; at < id.length; at += 1) sum = Math.imul(sum ^ id.charCodeAt(at), 0x01000193);
  sum = Math.imul(sum ^ (sum >>> 16), 0x85ebca6b);
  sum = Math.imul(sum ^ (sum >>> 13), 0xc2b2ae35);
  return (sum ^ (sum >>> 16)) >>> 0;
}

/** Ids of two tables may be alike; type and time tell them apart. */
export function traceIdOf({ event, topic }: Message): string {
  return hash("sha256", [topic, event.type, event.id, event.createdAt ?? ""].join("\n"), "hex").slice(0, 32);
}
