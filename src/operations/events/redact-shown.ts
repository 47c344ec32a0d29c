import { RelayError } from "../../core/errors.ts";
import type { EventHeaders } from "../../core/event.ts";
import { jsonRedactor, nameForm, REDACTED } from "../../core/redacted-json.ts";
import type { ShownPayload } from "./event-payload.ts";

/** Removes hidden parts of headers and payloads from what is shown. Never applied to what is delivered. */
export interface ShownRules {
  /** False when nothing is hidden. */
  readonly any: boolean;
  header(name: string, value: string): string;
  headers(headers: EventHeaders): EventHeaders;
  payload(payload: ShownPayload): ShownPayload;
}

/**
 * Rules by names of headers and JSON fields, ignoring case; `*` matches any characters. A name with dots is the end of
 * a path: `card.*` means all fields inside `card`.
 */
export function shownRules(patterns: readonly string[]): ShownRules {
  const names = patterns.map(nameForm);
  const redactedJson = jsonRedactor(patterns);
  const any = patterns.length > 0;
  const header = (name: string, value: string) => (names.some((form) => form.test(name)) ? REDACTED : value);
  return {
    any,
    header,
    headers: (headers) =>
      any ? Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, header(name, value)])) : headers,
    payload: (payload) =>
      any && payload.encoding === "utf-8" ? { ...payload, text: redactedJson(payload.text) } : payload,
  };
}

const SHOW_ALL: ShownRules = shownRules([]);

interface WithContent {
  readonly headers: EventHeaders;
  readonly payload: ShownPayload | null;
}

/** An item as the viewer may see it. */
export type ShownTo<Item> = Omit<Item, "payload"> & { readonly payload: ShownPayload | null };

/** Removes what the rules hide, and the payload if the viewer must not see it. */
export function shownTo<Item extends WithContent>(
  item: Item,
  rules: ShownRules = SHOW_ALL,
  maySeePayloads = true,
): ShownTo<Item> {
  const { headers, payload } = item;
  const isSeen = maySeePayloads && payload !== null;
  return { ...item, headers: rules.headers(headers), payload: isSeen ? rules.payload(payload) : null };
}

/** Throws when a redacted text is sent back: the hidden value would be lost. */
export function requireUnredacted(rules: ShownRules | undefined, payload: Buffer, headers: EventHeaders = {}): void {
  if (!rules?.any || ![payload.toString(), ...Object.values(headers)].some((text) => text.includes(REDACTED))) return;
  const what = `The content contains ${REDACTED} in place of a value that REDACT hides`;
  throw new RelayError("CONFIG_INVALID", `${what}: send the original value, or edit the row in the database`);
}
