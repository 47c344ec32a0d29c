import { RelayError } from "../../core/errors.ts";

/** A JSON merge patch, RFC 7396: fields are set, null removes one, objects are merged, other values are replaced. */
export type MergePatch = Readonly<Record<string, unknown>>;

const PATCH_BYTES_MAX = 64 * 1024;
/** Deeper than any real payload. The merge is recursive. */
const DEPTH_MAX = 100;

/** Throws CONFIG_INVALID for anything but a JSON object. Numbers keep all their digits. */
export function readPatch(text: string): MergePatch {
  if (text.length > PATCH_BYTES_MAX) throw unfit(`it has ${text.length} characters; the maximum is ${PATCH_BYTES_MAX}`);
  const value = parsedPatch(text);
  if (!isObject(value)) throw unfit('it is not a JSON object such as {"customer": {"id": "4711"}}');
  if (Object.keys(value).length === 0) throw unfit("it changes nothing");
  requireShallow(value, 0);
  return value;
}

function parsedPatch(text: string): unknown {
  try {
    return parseExact(text);
  } catch (error) {
    throw unfit(error instanceof Error ? error.message : String(error));
  }
}

/** The payload with the patch applied, or the reason why it cannot be patched. */
export function patched(payload: string, patch: MergePatch): { readonly text: string } | { readonly problem: string } {
  try {
    const value = parseExact(payload);
    if (!isObject(value)) return { problem: "its payload is not a JSON object" };
    return { text: JSON.stringify(merged(value, patch, 0)) };
  } catch (error) {
    if (error instanceof SyntaxError) return { problem: "its payload is not JSON" };
    // Stack overflow: the depth of a payload is not bounded.
    if (error instanceof RangeError) return { problem: "its payload is nested too deeply" };
    throw error;
  }
}

function merged(target: unknown, patch: MergePatch, depth: number): unknown {
  // Without a prototype, so that a field named __proto__ is an ordinary field.
  const result: Record<string, unknown> = Object.assign(Object.create(null), isObject(target) ? target : {});
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) delete result[name];
    else result[name] = isObject(value) ? merged(result[name], value, depth + 1) : value;
  }
  return result;
}

function requireShallow(value: unknown, depth: number): void {
  if (depth > DEPTH_MAX) throw unfit(`it is nested deeper than ${DEPTH_MAX} levels`);
  if (typeof value !== "object" || value === null) return;
  for (const inner of Object.values(value)) requireShallow(inner, depth + 1);
}

interface SourceText {
  readonly source?: string;
}

/** Supported by the language, not yet by its types: numbers as raw text. */
const exact = JSON as unknown as {
  parse(text: string, reviver: (key: string, value: unknown, context: SourceText) => unknown): unknown;
  rawJSON(text: string): object;
  isRawJSON(value: unknown): boolean;
};

function parseExact(text: string): unknown {
  return exact.parse(text, function (this: unknown, _key, value, { source }) {
    if (typeof value === "number" && source !== undefined) return exact.rawJSON(source);
    return isObject(value) ? Object.assign(Object.create(null), value) : value;
  });
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !exact.isRawJSON(value);
}

function unfit(why: string): RelayError {
  return new RelayError("CONFIG_INVALID", `Invalid JSON merge patch: ${why}`);
}
