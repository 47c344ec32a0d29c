import { z } from "zod";
import { reasonOf } from "../core/errors.ts";
import { nearestName } from "../routing/nearest-name.ts";

/** Settings arrive as texts. `read` throws an error whose message says what to write instead. */
function fromText<T>(read: (text: string) => T) {
  return z.string().transform((text, context): T => {
    try {
      return read(text);
    } catch (error) {
      context.addIssue({ code: "custom", message: reasonOf(error) });
      return z.NEVER;
    }
  });
}

export const text = (lengthMax = 1_000) =>
  fromText((written) => {
    if (written.length <= lengthMax) return written;
    throw new Error(`it has ${written.length} characters, ${lengthMax} are allowed`);
  });

export const matching = (pattern: RegExp, expected: string) =>
  fromText((written) => {
    if (pattern.test(written)) return written;
    throw new Error(`write ${expected}`);
  });

export const wholeNumber = (min: number, max: number) =>
  fromText((written) => {
    const value = Number(written);
    if (/^\d+$/.test(written) && value >= min && value <= max) return value;
    throw new Error(`write a whole number from ${min} to ${max}`);
  });

export const decimal = (min: number, max: number) =>
  fromText((written) => {
    const value = Number(written);
    if (/^\d+(\.\d+)?$/.test(written) && value >= min && value <= max) return value;
    throw new Error(`write a number from ${min} to ${max}`);
  });

/** Case does not matter; the value is one of `values` as written there. */
export function oneOf<const Value extends string>(values: readonly Value[]) {
  return fromText((written): Value => {
    const found = values.find((value) => value.toLowerCase() === written.toLowerCase());
    if (found !== undefined) return found;
    const nearest = nearestName(written, values);
    const hint = nearest === undefined ? "" : ` (did you mean ${nearest}?)`;
    throw new Error(`write ${orList(values)}${hint}`);
  });
}

export const flag = () => oneOf(["true", "false", "1", "0", "yes", "no", "on", "off"]).transform(isYes);

const isYes = (word: string): boolean => ["true", "1", "yes", "on"].includes(word);

/** Items between commas; blanks around them do not count. */
export const list = () =>
  fromText((written) => {
    const items = written.split(",").map((item) => item.trim());
    if (items.every((item) => item !== "")) return items;
    throw new Error("write at least one item, several with a comma between them, none of them empty");
  });

const UNITS_MS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
type Unit = keyof typeof UNITS_MS;

interface DurationBounds {
  readonly minMs: number;
  readonly maxMs: number;
  /** What a number without a unit means, as the setting's name says. */
  readonly unit?: Unit;
}

/** In milliseconds: `500ms`, `1.5s`, `3m`, `2h`, `7d`, or a bare number in the unit of the setting's name. */
export const duration = ({ minMs, maxMs, unit = "ms" }: DurationBounds) =>
  fromText((written) => {
    const match = /^(\d+(?:\.\d+)?) ?(ms|s|m|h|d)?$/i.exec(written.trim());
    const unitMs = UNITS_MS[(match?.[2]?.toLowerCase() as Unit | undefined) ?? unit];
    const ms = Number(match?.[1]) * unitMs;
    if (ms >= minMs && ms <= maxMs) return ms;
    const bare = unit === "ms" ? "milliseconds" : unit === "s" ? "seconds" : unit;
    throw new Error(
      `write a duration such as 500ms, 10s or 3m, or a number of ${bare}, from ${inWords(minMs)} to ${inWords(maxMs)}`,
    );
  });

function inWords(ms: number): string {
  const unit = (["d", "h", "m", "s"] as const).find((name) => ms >= UNITS_MS[name] && ms % UNITS_MS[name] === 0);
  return unit === undefined ? `${ms}ms` : `${ms / UNITS_MS[unit]}${unit}`;
}

/** Certificates and keys. Environments that know no line ends write them as `\n`. */
export const pem = () =>
  fromText((written) => {
    const value = written.includes("\n") ? written : written.replaceAll("\\n", "\n");
    if (/-----BEGIN [A-Z0-9 ]+-----/.test(value)) return value;
    throw new Error("it is no PEM text (-----BEGIN ...); name a file with the variable that ends with _FILE");
  });

/** `name=value` pairs between commas, or a JSON object of texts. */
export const pairs = () =>
  fromText((written): Readonly<Record<string, string>> => {
    const entries = written.trimStart().startsWith("{") ? jsonEntries(written) : writtenEntries(written);
    if (entries?.every(([name]) => name !== "")) return Object.fromEntries(entries);
    throw new Error('write name=value pairs with commas between them, or a JSON object such as {"name": "value"}');
  });

function jsonEntries(written: string): [string, string][] | null {
  try {
    const parsed: unknown = JSON.parse(written);
    const entries = Object.entries(parsed as object);
    return entries.every(([, value]) => typeof value === "string") ? entries : null;
  } catch {
    return null;
  }
}

function writtenEntries(written: string): [string, string][] | null {
  const items = written.split(",").map((item) => item.trim());
  if (items.some((item) => !item.includes("="))) return null;
  return items.map((item) => {
    const at = item.indexOf("=");
    return [item.slice(0, at).trim(), item.slice(at + 1).trim()];
  });
}

export function orList(values: readonly string[]): string {
  return values.length < 2 ? values.join("") : `${values.slice(0, -1).join(", ")} or ${values.at(-1)}`;
}
