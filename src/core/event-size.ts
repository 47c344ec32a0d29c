import type { OutboxEvent } from "./event.ts";

/** The type, the key, the correlation id and the trace of an event may each have so many bytes. */
export const TEXT_BYTES_MAX = 8 * 1024;
/** Its headers as JSON. */
export const HEADERS_BYTES_MAX = 256 * 1024;

/** A part of an event that is beyond its limit; such an event is a dead letter, and the part is never loaded. */
export function tooLarge(part: string, bytes: number | string, bytesMax: number): string {
  return `the ${part} has ${bytes} bytes, more than the ${bytesMax} that are allowed`;
}

/** About the bytes that an event takes in memory, all of its parts together. */
export function eventBytes(event: OutboxEvent): number {
  const { id, type, key, correlationId, headers, payload } = event;
  let characters = id.length + type.length + (key?.length ?? 0) + (correlationId?.length ?? 0);
  for (const name in headers) characters += name.length + headers[name]!.length;
  // Two bytes for each: a text with a single character beyond Latin takes as much.
  return payload.length + 2 * characters;
}
