import type { OutboxEvent } from "./event.ts";

/**
 * Values that can be recognised anywhere. Short or numeric ones occur by chance (503) and are replaced only between
 * quotes.
 */
const DISTINCTIVE = /^(?=.{3}).*\D|^\d{6}/s;

/**
 * A reason without the values of the event that failed. Everyone can read the reason of a circuit, also health checks
 * without a login. The event's own attempts keep the full reason.
 */
export function sharedReason(
  reason: string,
  { correlationId, headers, id, key, type }: Pick<OutboxEvent, "correlationId" | "headers" | "id" | "key" | "type">,
): string {
  const values: (readonly [value: string | null, name: string])[] = [
    [id, "<id>"],
    [key, "<key>"],
    [correlationId, "<correlation id>"],
    ...Object.values(headers).map((value) => [value, "<header>"] as const),
  ];
  // A type is no secret, and is mostly the topic's name. The longest value first, because one may be part of another.
  const hidden = (value: string | null) => value !== null && value !== "" && value !== type;
  const known = values.filter((pair): pair is [string, string] => hidden(pair[0]));
  known.sort(([a], [b]) => b.length - a.length);
  return known.reduce((text, [value, name]) => replaced(text, value, name), reason);
}

function replaced(text: string, value: string, name: string): string {
  if (!text.includes(value)) return text;
  const quoted = value.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&");
  const plain = `(?<![\\p{L}\\p{N}_])${quoted}(?![\\p{L}\\p{N}_])`;
  const between = `(?<=["'])${quoted}(?=["'])`;
  return text.replaceAll(new RegExp(DISTINCTIVE.test(value) ? plain : between, "gu"), () => name);
}
