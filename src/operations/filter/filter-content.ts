import type { HeaderFilter, PayloadFilter } from "../events/event-filter.ts";
import { type FilterWord, literalValue, quotedValue, wordError } from "./filter-words.ts";

/** Prefix of a field's path: `payload.order.id:4711`. */
export const PAYLOAD_PREFIX = "payload.";

/** Parses `header:tenant=acme`, or `header:tenant` for any value. */
export function headerOf(word: FilterWord): HeaderFilter {
  const cut = word.value.indexOf("=");
  const name = cut < 0 ? word.value : word.value.slice(0, cut);
  if (name === "") throw wordError(word, "name the header: write header:tenant=acme, or header:tenant for any value");
  return { name, value: cut < 0 ? null : asValue(word, word.value.slice(cut + 1)) };
}

/** Parses `payload.order.id:4711`. */
export function payloadOf(word: FilterWord): PayloadFilter {
  const path = (word.field ?? "").slice(PAYLOAD_PREFIX.length).split(".");
  if (path.some((name) => name === "")) {
    throw wordError(
      word,
      `name the field of the payload: write payload.order:4711, or text:${quotedValue(word.value)} to search the whole payload`,
    );
  }
  return { path, ...asValue(word, word.value) };
}

/** Writes a header condition as a filter. */
export function headerText({ name, value }: HeaderFilter): string {
  if (value === null) return `header:${quotedValue(name)}`;
  if (value.isPattern) return `header:${name}=${value.value}`;
  return `header:${literalValue(`${name}=${value.value}`)}`;
}

/** Writes a payload condition as a filter. */
export function payloadText({ isPattern, path, value }: PayloadFilter): string {
  const name = path.join(".").replace(/[\s"\\:]/g, "\\$&");
  return `${PAYLOAD_PREFIX}${name}:${isPattern ? value : literalValue(value)}`;
}

function asValue({ isLiteral }: FilterWord, value: string) {
  return { value, isPattern: !isLiteral && value.includes("*") };
}
