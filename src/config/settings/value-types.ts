import { parse as parseYaml } from "yaml";
import { z } from "zod";
import { reasonOf } from "../../core/errors.ts";
import { nearestName } from "../../routing/nearest-name.ts";

/** A JSON Schema. */
export type JsonSchema = Readonly<Record<string, unknown>>;

/** The form of a value in a config file, where it need not be a string. */
export type Form = "text" | "number" | "duration" | "flag" | "list" | "pairs" | "structure";

interface ValueType {
  readonly form: Form;
  readonly json: JsonSchema;
}

/** An invalid value inside a structure: its path, and the rest of the sentence about it. */
interface FaultInside {
  readonly path: readonly PropertyKey[];
  readonly text: string;
}

class FaultsInside extends Error {
  readonly faults: readonly FaultInside[];

  constructor(faults: readonly FaultInside[]) {
    super(faults.map(({ text }) => text).join("; "));
    this.faults = faults;
  }
}

/** A path as text: `[0].retry.schedule`. */
export function pathText(path: readonly PropertyKey[]): string {
  return path.map((part) => (typeof part === "number" ? `[${part}]` : `.${String(part)}`)).join("");
}

/** Every setting arrives as a text. `read` throws an error whose message says what to write instead. */
function fromText<T>(valueType: ValueType, read: (text: string) => T) {
  const type = z.string().transform((text, context): T => {
    try {
      return read(text);
    } catch (error) {
      const faults = error instanceof FaultsInside ? error.faults : [{ path: [], text: reasonOf(error) }];
      for (const { path, text: message } of faults) context.addIssue({ code: "custom", message, path: [...path] });
      return z.NEVER;
    }
  });
  return type.meta({ ...valueType });
}

/** The value type of a type that can be optional or have a default. */
export function valueTypeOf(type: z.ZodType): ValueType {
  const inner = type instanceof z.ZodOptional || type instanceof z.ZodDefault ? type.unwrap() : type;
  return (inner as z.ZodType).meta() as unknown as ValueType;
}

/** In a file, a value of any type can be replaced by an environment variable. */
const orVariable = (json: JsonSchema): JsonSchema => ({ anyOf: [json, { $ref: "#/$defs/variable" }] });

/** A string of bounded length. */
export const text = (lengthMax = 1_000) =>
  fromText({ form: "text", json: { type: "string", maxLength: lengthMax } }, (written) => {
    if (written.length <= lengthMax) return written;
    throw new Error(`it has ${written.length} characters; at most ${lengthMax} are allowed`);
  });

/** A string that matches a pattern. */
export const matching = (pattern: RegExp, expected: string) =>
  fromText({ form: "text", json: orVariable({ type: "string", pattern: pattern.source }) }, (written) => {
    if (pattern.test(written)) return written;
    throw new Error(`write ${expected}`);
  });

/** A whole number within bounds. */
export const wholeNumber = (min: number, max: number) =>
  fromText({ form: "number", json: orVariable({ type: "integer", minimum: min, maximum: max }) }, (written) => {
    const value = Number(written);
    if (/^\d+$/.test(written) && value >= min && value <= max) return value;
    throw new Error(`write a whole number from ${min} to ${max}`);
  });

/** A port, or as in libpq several separated by commas, of which an empty one stands for the usual port. */
export const ports = () =>
  fromText(
    {
      form: "number",
      json: { anyOf: [{ type: "integer", minimum: 1, maximum: 65_535 }, { type: "string" }] },
    },
    (written): number | string => {
      const isPort = (port: string) => /^\d{1,5}$/.test(port) && Number(port) >= 1 && Number(port) <= 65_535;
      if (isPort(written)) return Number(written);
      const isList = written.includes(",");
      if (isList && written.split(",").every((port) => port === "" || isPort(port))) return written;
      throw new Error("write a whole number from 1 to 65535, or one for each host, separated by commas");
    },
  );

/** A decimal number within bounds. */
export const decimal = (min: number, max: number) =>
  fromText({ form: "number", json: orVariable({ type: "number", minimum: min, maximum: max }) }, (written) => {
    const value = Number(written);
    if (/^\d+(\.\d+)?$/.test(written) && value >= min && value <= max) return value;
    throw new Error(`write a number from ${min} to ${max}`);
  });

/** One of these values, in any letter case; returns it as listed. */
export function oneOf<const Value extends string>(values: readonly Value[]) {
  return fromText({ form: "text", json: orVariable({ enum: values }) }, (written) => chosenOf(values, written));
}

function chosenOf<Value extends string>(values: readonly Value[], written: string): Value {
  const found = values.find((value) => value.toLowerCase() === written.toLowerCase());
  if (found !== undefined) return found;
  const nearest = nearestName(written, values);
  const hint = nearest === undefined ? "" : ` (did you mean ${nearest}?)`;
  throw new Error(`write ${orList(values)}${hint}`);
}

const FLAG_WORDS = ["true", "false", "1", "0", "yes", "no", "on", "off"] as const;

/** A boolean, with the usual words for it. */
export const flag = () =>
  fromText({ form: "flag", json: orVariable({ type: "boolean" }) }, (written) =>
    ["true", "1", "yes", "on"].includes(chosenOf(FLAG_WORDS, written)),
  );

/** Comma-separated items, or a JSON array of strings; surrounding blanks are ignored. */
export const list = () =>
  fromText(
    { form: "list", json: { anyOf: [{ type: "array", items: { type: "string" }, minItems: 1 }, { type: "string" }] } },
    (written): readonly string[] => {
      const items = (jsonItems(written) ?? written.split(",")).map((item) => item.trim());
      if (items.length > 0 && items.every((item) => item !== "")) return items;
      throw new Error("write one or more items, separated by commas, none of them empty");
    },
  );

const UNITS_MS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
type Unit = keyof typeof UNITS_MS;

const BARE_NUMBER = /^\d+(?:\.\d+)?$/;
const WITH_UNITS = /^(?:\d+(?:\.\d+)? ?(?:ms|s|m|h|d))+$/i;
const DURATION_JSON: JsonSchema = {
  anyOf: [
    { type: "number", minimum: 0 },
    { type: "string", pattern: "^(\\d+(\\.\\d+)? ?(ms|s|m|h|d)?)+$" },
    { $ref: "#/$defs/variable" },
  ],
};

/** Milliseconds from `500ms`, `1.5s`, `3m`, `1h30m`, `7d`, or a bare number of milliseconds. */
export const duration = ({ minMs, maxMs }: { readonly minMs: number; readonly maxMs: number }) =>
  fromText({ form: "duration", json: DURATION_JSON }, (written) => {
    const ms = durationMs(written.trim());
    if (ms >= minMs && ms <= maxMs) return ms;
    const bounds = `from ${durationText(minMs)} to ${durationText(maxMs)}`;
    throw new Error(`write a duration such as 500ms, 10s or 3m, or a number of milliseconds, ${bounds}`);
  });

function durationMs(written: string): number {
  if (BARE_NUMBER.test(written)) return Number(written);
  if (!WITH_UNITS.test(written)) return Number.NaN;
  const parts = [...written.matchAll(/(\d+(?:\.\d+)?) ?(ms|s|m|h|d)/gi)];
  return parts.reduce((sum, [, count, unit]) => sum + Number(count) * UNITS_MS[unit?.toLowerCase() as Unit], 0);
}

/** A duration as a user would write it: 3m, not 180000. */
export function durationText(ms: number): string {
  const unit = (["d", "h", "m", "s"] as const).find((name) => ms >= UNITS_MS[name] && ms % UNITS_MS[name] === 0);
  return unit === undefined ? `${ms}ms` : `${ms / UNITS_MS[unit]}${unit}`;
}

/** Certificates and keys. Accepts `\n` for line ends, for environments that cannot hold them. */
export const pem = () =>
  fromText({ form: "text", json: { type: "string" } }, (written) => {
    const value = written.includes("\n") ? written : written.replaceAll("\\n", "\n");
    if (/-----BEGIN [A-Z0-9 ]+-----/.test(value)) return value;
    throw new Error("it is not PEM text (-----BEGIN ...); to read a file, use the variable that ends with _FILE");
  });

/** Comma-separated `name=value` pairs, or a JSON object of strings. */
export const pairs = () =>
  fromText(
    {
      form: "pairs",
      json: { anyOf: [{ type: "object", additionalProperties: { type: "string" } }, { type: "string" }] },
    },
    (written): Readonly<Record<string, string>> => {
      const entries = written.trimStart().startsWith("{") ? jsonEntries(written) : writtenEntries(written);
      if (entries?.every(([name]) => name !== "")) return Object.fromEntries(entries);
      throw new Error('write comma-separated name=value pairs, or a JSON object such as {"name": "value"}');
    },
  );

/** Lists and groups with a schema: YAML or JSON in the environment, plain values in a file. */
export function structure<Type extends z.ZodType>(type: Type, example: string) {
  const { $schema: _, ...json } = z.toJSONSchema(type, { io: "input" });
  return fromText({ form: "structure", json: json as JsonSchema }, (written): z.output<Type> => {
    const value = parsedYaml(written);
    const parsed = type.safeParse(value);
    if (parsed.success) return parsed.data;
    if (parsed.error.issues.some(({ path }) => path.length === 0)) throw new Error(`write it like ${example}`);
    throw new FaultsInside(parsed.error.issues.flatMap((issue) => faultsOf(type, issue, value)));
  });
}

/** Undefined if the text is neither YAML nor JSON. */
export function parsedYaml(written: string): unknown {
  try {
    return parseYaml(written);
  } catch {
    return undefined;
  }
}

function faultsOf(type: z.ZodType, issue: z.core.$ZodIssue, value: unknown): FaultInside[] {
  const { path } = issue;
  if (issue.code === "invalid_key") return issue.issues.map(({ message }) => ({ path, text: `: write ${message}` }));
  if (issue.code === "invalid_value") {
    const written = JSON.stringify(path.reduce(memberOf, value));
    return [{ path, text: `: ${written}; use ${orList(issue.values.map(String))}` }];
  }
  if (issue.code !== "unrecognized_keys") return [{ path, text: `: ${issue.message}` }];
  const known = keysAt(z.toJSONSchema(type, { io: "input" }) as JsonSchema, path);
  return issue.keys.map((key) => {
    const nearest = nearestName(key, known);
    const hint = nearest === undefined ? `known are ${known.join(", ")}` : `did you mean ${nearest}?`;
    return { path: [...path, key], text: ` is not a setting: ${hint}` };
  });
}

function memberOf(value: unknown, part: PropertyKey): unknown {
  return typeof value === "object" && value !== null ? Reflect.get(value, part) : undefined;
}

function keysAt(schema: JsonSchema, path: readonly PropertyKey[]): string[] {
  let at: JsonSchema | undefined = schema;
  for (const part of path) {
    const { items, properties } = at as { items?: JsonSchema; properties?: Record<string, JsonSchema> };
    at = typeof part === "number" ? items : properties?.[String(part)];
    if (at === undefined) return [];
  }
  return Object.keys((at.properties as object | undefined) ?? {});
}

function jsonItems(written: string): string[] | null {
  if (!written.trimStart().startsWith("[")) return null;
  const parsed = parsedJson(written);
  return Array.isArray(parsed) && parsed.every((item) => typeof item === "string") ? parsed : null;
}

function jsonEntries(written: string): [string, string][] | null {
  const parsed = parsedJson(written);
  if (typeof parsed !== "object" || parsed === null) return null;
  const entries = Object.entries(parsed);
  return entries.every(([, value]) => typeof value === "string") ? entries : null;
}

function parsedJson(written: string): unknown {
  try {
    return JSON.parse(written);
  } catch {
    return undefined;
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

/** `a, b or c`. */
export function orList(values: readonly string[]): string {
  return values.length < 2 ? values.join("") : `${values.slice(0, -1).join(", ")} or ${values.at(-1)}`;
}
