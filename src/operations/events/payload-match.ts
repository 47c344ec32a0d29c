import type { PayloadFilter } from "./event-filter.ts";

/** How much of a payload is read to match its fields. A larger payload is matched by its text alone. */
export const MATCHED_BYTES_MAX = 64 * 1024;

/**
 * Texts that every matching payload contains, to prefilter in the database by bytes. Non-ASCII letters, quotes and
 * slashes have several JSON encodings, so they are left out.
 */
export function piecesOf({ isPattern, path, value }: PayloadFilter): readonly string[] {
  const name = path.at(-1) ?? "";
  const names = /^[\w-]+$/.test(name) ? [`"${name}"`] : [];
  const runs = (isPattern ? value.split("*") : [value]).flatMap((part) => part.match(/[\w .:@+-]+/g) ?? []);
  const longest = runs.toSorted((left, right) => right.length - left.length).slice(0, 1);
  return [...names, ...longest];
}

/**
 * A regular expression over the bytes in the form of `encode(.., 'escape')`: the whole value between JSON delimiters.
 * Null when the value has several encodings.
 */
export function tokenOf({ isPattern, value }: PayloadFilter): string | null {
  if (isPattern || !/^[\w .:@+-]+$/.test(value)) return null;
  return `[":,[[:space:]]${value.replaceAll(/[.+]/g, "\\$&")}[]",}[:space:]]`;
}

/** Whether the payload has all of these fields with these values. Anything but JSON has none. */
export function payloadMatches(start: Buffer, bytes: number, filters: readonly PayloadFilter[]): boolean {
  if (bytes > start.length) return true;
  const json = jsonOf(start);
  return json !== undefined && filters.every((filter) => hasField(json, filter.path, testOf(filter)));
}

type Json = null | boolean | string | readonly Json[] | { readonly [name: string]: Json };

/** Numbers stay as written, so no digit is lost. Too deep nesting counts as not JSON. */
function jsonOf(bytes: Buffer): Json | undefined {
  const asWritten = (_name: string, value: unknown, context?: { readonly source?: string }) =>
    typeof value === "number" ? (context?.source ?? String(value)) : value;
  try {
    return JSON.parse(bytes.toString("utf8"), asWritten as Parameters<typeof JSON.parse>[1]) as Json;
  } catch {
    return undefined;
  }
}

/** Field names may contain dots, so every split of the path is tried. */
function hasField(json: Json, path: readonly string[], isMeant: (value: Json) => boolean): boolean {
  if (Array.isArray(json)) return json.some((item: Json) => hasField(item, path, isMeant));
  if (path.length === 0) return isMeant(json);
  if (typeof json !== "object" || json === null) return false;
  const fields = json as { readonly [name: string]: Json };
  return path.some((_, at) => {
    const name = path.slice(0, at + 1).join(".");
    return Object.hasOwn(fields, name) && hasField(fields[name] ?? null, path.slice(at + 1), isMeant);
  });
}

function testOf({ isPattern, value }: PayloadFilter): (value: Json) => boolean {
  const text = (json: Json) => (json === null || typeof json === "boolean" ? String(json) : json);
  if (!isPattern) return (json) => text(json) === value;
  const parts = value.split("*").map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  const form = new RegExp(`^${parts.join(".*")}$`, "s");
  return (json) => {
    const found = text(json);
    return typeof found === "string" && form.test(found);
  };
}
