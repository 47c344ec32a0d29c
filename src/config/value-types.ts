import { parse as parseYaml } from "yaml";
import { z } from "zod";
import { reasonOf } from "../core/errors.ts";
import { nearestName } from "../routing/nearest-name.ts";

export type JsonSchema = Readonly<Record<string, unknown>>;

/** What a value looks like in a config file, where it need not be a text. */
export type Form = "text" | "number" | "duration" | "flag" | "list" | "pairs" | "structure";

interface ValueType {
  readonly form: Form;
  readonly json: JsonSchema;
}

/** Every setting arrives as a text. `read` throws an error whose message says what to write instead. */
function fromText<T>(valueType: ValueType, read: (text: string) => T) {
  const type = z.string().transform((text, context): T => {
    try {
      return read(text);
    } catch (error) {
      context.addIssue({ code: "custom", message: reasonOf(error) });
      return z.NEVER;
    }
  });
  return type.meta({ ...valueType });
}

/** Of a type that is perhaps optional or has a default. */
export function valueTypeOf(type: z.ZodType): ValueType {
  const inner = type instanceof z.ZodOptional || type instanceof z.ZodDefault ? type.unwrap() : type;
  return (inner as z.ZodType).meta() as unknown as ValueType;
}

/** In a file, a value of any type may instead come from the environment. */
const orVariable = (json: JsonSchema): JsonSchema => ({ anyOf: [json, { $ref: "#/$defs/variable" }] });

export const text = (lengthMax = 1_000) =>
  fromText({ form: "text", json: { type: "string", maxLength: lengthMax } }, (written) => {
    if (written.length <= lengthMax) return written;
    throw new Error(`it has ${written.length} characters, ${lengthMax} are allowed`);
  });

export const matching = (pattern: RegExp, expected: string) =>
  fromText({ form: "text", json: orVariable({ type: "string", pattern: pattern.source }) }, (written) => {
    if (pattern.test(written)) return written;
    throw new Error(`write ${expected}`);
  });

export const wholeNumber = (min: number, max: number) =>
  fromText({ form: "number", json: orVariable({ type: "integer", minimum: min, maximum: max }) }, (written) => {
    const value = Number(written);
    if (/^\d+$/.test(written) && value >= min && value <= max) return value;
    throw new Error(`write a whole number from ${min} to ${max}`);
  });

export const decimal = (min: number, max: number) =>
  fromText({ form: "number", json: orVariable({ type: "number", minimum: min, maximum: max }) }, (written) => {
    const value = Number(written);
    if (/^\d+(\.\d+)?$/.test(written) && value >= min && value <= max) return value;
    throw new Error(`write a number from ${min} to ${max}`);
  });

/** Case does not matter; the value is one of `values` as written there. */
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

export const flag = () =>
  fromText({ form: "flag", json: orVariable({ type: "boolean" }) }, (written) =>
    ["true", "1", "yes", "on"].includes(chosenOf(FLAG_WORDS, written)),
  );

/** Items between commas, or a JSON array of texts; blanks around them do not count. */
export const list = () =>
  fromText(
    { form: "list", json: { anyOf: [{ type: "array", items: { type: "string" }, minItems: 1 }, { type: "string" }] } },
    (written): readonly string[] => {
      const items = (jsonItems(written) ?? written.split(",")).map((item) => item.trim());
      if (items.length > 0 && items.every((item) => item !== "")) return items;
      throw new Error("write at least one item, several with a comma between them, none of them empty");
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

/** In milliseconds: `500ms`, `1.5s`, `3m`, `1h30m`, `7d`, or a bare number of milliseconds. */
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

/** As one would write it: 3m, not 180000. */
export function durationText(ms: number): string {
  const unit = (["d", "h", "m", "s"] as const).find((name) => ms >= UNITS_MS[name] && ms % UNITS_MS[name] === 0);
  return unit === undefined ? `${ms}ms` : `${ms / UNITS_MS[unit]}${unit}`;
}

/** Certificates and keys. Environments that know no line ends write them as `\n`. */
export const pem = () =>
  fromText({ form: "text", json: { type: "string" } }, (written) => {
    const value = written.includes("\n") ? written : written.replaceAll("\\n", "\n");
    if (/-----BEGIN [A-Z0-9 ]+-----/.test(value)) return value;
    throw new Error("it is no PEM text (-----BEGIN ...); name a file with the variable that ends with _FILE");
  });

/** `name=value` pairs between commas, or a JSON object of texts. */
export const pairs = () =>
  fromText(
    {
      form: "pairs",
      json: { anyOf: [{ type: "object", additionalProperties: { type: "string" } }, { type: "string" }] },
    },
    (written): Readonly<Record<string, string>> => {
      const entries = written.trimStart().startsWith("{") ? jsonEntries(written) : writtenEntries(written);
      if (entries?.every(([name]) => name !== "")) return Object.fromEntries(entries);
      throw new Error('write name=value pairs with commas between them, or a JSON object such as {"name": "value"}');
    },
  );

/** Lists and groups of their own shape: YAML or JSON in the environment, the thing itself in a file. */
export function structure<Type extends z.ZodType>(type: Type, example: string) {
  const { $schema: _, ...json } = z.toJSONSchema(type, { io: "input" });
  return fromText({ form: "structure", json: json as JsonSchema }, (written): z.output<Type> => {
    const parsed = type.safeParse(parsedYaml(written));
    if (parsed.success) return parsed.data;
    if (parsed.error.issues.some(({ path }) => path.length === 0)) throw new Error(`write it like ${example}`);
    throw new Error(parsed.error.issues.flatMap((issue) => issueTexts(type, issue)).join("; "));
  });
}

/** Undefined for a text that is neither YAML nor JSON. */
function parsedYaml(written: string): unknown {
  try {
    return parseYaml(written);
  } catch {
    return undefined;
  }
}

/** `[0].retry.schedule`: where in the structure something is wrong. */
function issueTexts(type: z.ZodType, issue: z.core.$ZodIssue): string[] {
  const place = issue.path.map((part) => (typeof part === "number" ? `[${part}]` : `.${String(part)}`)).join("");
  const at = place.replace(/^\./, "");
  if (issue.code === "invalid_key") return issue.issues.map(({ message }) => `${at}: write ${message}`);
  if (issue.code !== "unrecognized_keys") return [`${at === "" ? "" : `${at}: `}${issue.message}`];
  const known = keysAt(z.toJSONSchema(type, { io: "input" }) as JsonSchema, issue.path);
  return issue.keys.map((key) => {
    const nearest = nearestName(key, known);
    const hint = nearest === undefined ? `known are ${known.join(", ")}` : `did you mean ${nearest}?`;
    return `${at === "" ? "" : `${at}.`}${key} is no setting: ${hint}`;
  });
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

export function orList(values: readonly string[]): string {
  return values.length < 2 ? values.join("") : `${values.slice(0, -1).join(", ")} or ${values.at(-1)}`;
}
