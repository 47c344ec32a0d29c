import { RelayError } from "../core/errors.ts";
import type { Headers } from "../core/event.ts";
import type { ShownPayload } from "./event-payload.ts";

/** Takes out of headers and payloads what nobody is to see. What is delivered is never touched. */
export interface ShownRules {
  /** False when there is nothing to take out. */
  readonly any: boolean;
  header(name: string, value: string): string;
  headers(headers: Headers): Headers;
  payload(payload: ShownPayload): ShownPayload;
}

/** Stands in the place of a value. */
const REDACTED = "[redacted]";

/**
 * By the names of headers and of fields in JSON, case aside; `*` stands for any run of characters. A name with dots is
 * the end of a path: `card.*` means all fields inside of `card`.
 */
export function shownRules(patterns: readonly string[]): ShownRules {
  const names = patterns.map(nameForm);
  const paths = patterns.map((pattern) => pattern.split(".").map(nameForm).reverse());
  const any = patterns.length > 0;
  const header = (name: string, value: string) => (names.some((form) => form.test(name)) ? REDACTED : value);
  const isHidden = (path: readonly string[]) =>
    paths.some((forms) => forms.length <= path.length && forms.every((form, at) => form.test(path.at(-1 - at) ?? "")));
  return {
    any,
    header,
    headers: (headers) =>
      any ? Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, header(name, value)])) : headers,
    payload: (payload) =>
      any && payload.encoding === "utf-8" ? { ...payload, text: redactedJson(payload.text, isHidden) } : payload,
  };
}

const SHOW_ALL: ShownRules = shownRules([]);

interface WithContent {
  readonly headers: Headers;
  readonly payload: ShownPayload | null;
}

export type ShownTo<Item> = Omit<Item, "payload"> & { readonly payload: ShownPayload | null };

/** As somebody may see it: without what the rules hide, and perhaps without the payload. */
export function shownTo<Item extends WithContent>(
  item: Item,
  rules: ShownRules = SHOW_ALL,
  maySeePayloads = true,
): ShownTo<Item> {
  const { headers, payload } = item;
  const isSeen = maySeePayloads && payload !== null;
  return { ...item, headers: rules.headers(headers), payload: isSeen ? rules.payload(payload) : null };
}

/** Throws when somebody sends back what was shown to him: what was hidden would be lost for ever. */
export function requireUnredacted(rules: ShownRules | undefined, payload: Buffer, headers: Headers = {}): void {
  if (!rules?.any || ![payload.toString(), ...Object.values(headers)].some((text) => text.includes(REDACTED))) return;
  const what = `The content has ${REDACTED} in it, which stands for a value that REDACT hides`;
  throw new RelayError("CONFIG_INVALID", `${what}: write the value itself, or edit the row in the database`);
}

function nameForm(pattern: string): RegExp {
  const parts = pattern.split("*").map((part) => part.replaceAll(/[.+?^${}()|[\]\\-]/g, "\\$&"));
  return new RegExp(`^${parts.join(".*")}$`, "is");
}

interface Level {
  readonly isObject: boolean;
  /** Of the field that is being read. */
  key: string | null;
  isKeyNext: boolean;
}

/**
 * Replaces values in the text itself: nothing else of it changes, so that numbers keep all their digits. A text that was
 * cut, or is no JSON after all, is read as far as it makes sense.
 */
function redactedJson(text: string, isHidden: (path: readonly string[]) => boolean): string {
  if (!/^\s*[{[]/.test(text)) return text;
  const levels: Level[] = [];
  const shown: string[] = [];
  let [from, at] = [0, 0];
  while (at < text.length) {
    const level = levels.at(-1);
    const sign = text[at];
    if (sign === '"') {
      const end = endOfString(text, at);
      if (level?.isObject && level.isKeyNext) {
        level.key = keyOf(text.slice(at, end));
        level.isKeyNext = false;
      }
      at = end;
      continue;
    }
    at += 1;
    if (sign === "{" || sign === "[") levels.push({ isObject: sign === "{", key: null, isKeyNext: sign === "{" });
    else if (sign === "}" || sign === "]") levels.pop();
    else if (sign === "," && level !== undefined) level.isKeyNext = level.isObject;
    else if (sign === ":" && isHidden(pathOf(levels))) {
      const start = at + (/^\s*/.exec(text.slice(at, at + 1_000))?.[0].length ?? 0);
      shown.push(text.slice(from, start), JSON.stringify(REDACTED));
      from = endOfValue(text, start);
      at = from;
    }
  }
  return shown.join("") + text.slice(from);
}

/** The names of the fields that lead here; places in lists do not count. */
function pathOf(levels: readonly Level[]): readonly string[] {
  return levels.flatMap(({ isObject, key }) => (isObject && key !== null ? [key] : []));
}

/** Behind the closing quote, or the end of the text. */
function endOfString(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at += 1) {
    if (text[at] === "\\") at += 1;
    else if (text[at] === '"') return at + 1;
  }
  return text.length;
}

function endOfValue(text: string, start: number): number {
  let depth = 0;
  for (let at = start; at < text.length; at += 1) {
    const sign = text[at]!;
    if (sign === '"') {
      at = endOfString(text, at) - 1;
      if (depth === 0) return at + 1;
    } else if (sign === "{" || sign === "[") depth += 1;
    else if (sign === "}" || sign === "]") {
      if (depth === 0) return at;
      depth -= 1;
      if (depth === 0) return at + 1;
    } else if (depth === 0 && /[,\s]/.test(sign)) return at;
  }
  return text.length;
}

/** A name may be written with escapes. */
function keyOf(literal: string): string {
  try {
    return JSON.parse(literal) as string;
  } catch {
    return literal.replaceAll('"', "");
  }
}
