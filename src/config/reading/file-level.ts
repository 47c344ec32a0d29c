import { nearestName } from "../../routing/nearest-name.ts";
import { ENVIRONMENT_NAMES, FILE_PATHS } from "../settings/names.ts";
import { settingOf } from "../settings/settings.ts";
import { type Form, orList, valueTypeOf } from "../settings/value-types.ts";
import type { ConfigFile } from "./config-file.ts";
import { type Environment, type ReadText, textOfFile } from "./environment.ts";
import { describeOrigin, type Level, LevelBuilder, type Origin } from "./written.ts";

interface FileReading {
  readonly file: ConfigFile;
  readonly env: Environment;
  readonly readText: ReadText;
  readonly problems: string[];
  readonly builder: LevelBuilder;
}

/** Reads the settings from the config file. Unknown keys are problems: a misspelt one would have no effect. */
export function fileLevel(file: ConfigFile, env: Environment, readText: ReadText, problems: string[]): Level {
  const builder = new LevelBuilder();
  const reading = { file, env, readText, problems, builder };
  if (isGroup(file.value)) readGroup(reading, [], file.value);
  else problems.push(`${file.name} has no settings: write groups such as database: { url: ... }`);
  return builder.level;
}

function readGroup(reading: FileReading, above: readonly string[], group: Readonly<Record<string, unknown>>): void {
  const { file, problems } = reading;
  for (const [key, value] of Object.entries(group)) {
    const keys = [...above, key];
    const path = keys.join(".");
    const origin: Origin = { kind: "file", name: path, file: file.name, line: file.lineOf(keys) };
    if (FILE_PATHS.has(path)) readValue(reading, path, origin, value);
    else if (!isGroupPath(path)) {
      // Editors use it to find the schema.
      if (path !== "$schema") problems.push(`${describeOrigin(origin)} is not a setting: ${hintFor(above, key)}`);
    } else if (isGroup(value)) readGroup(reading, keys, value);
    else if (value !== null && value !== undefined) {
      problems.push(`${describeOrigin(origin)} is a group: write ${childrenOf(keys).join(", ")} inside it`);
    }
  }
}

function readValue(
  { file, env, readText, problems, builder }: FileReading,
  path: string,
  origin: Origin,
  value: unknown,
): void {
  const { setting, isFile } = FILE_PATHS.get(path)!;
  const form = isFile ? "text" : valueTypeOf(settingOf(setting).type).form;
  const isEmpty = value === null || value === undefined;
  // As in the environment, an empty value counts as unset; but an empty list was meant as a list.
  if (isEmpty && setting !== "OUTBOX_SCHEMAS") return;
  const missing: string[] = [];
  const filled = file.hasVariables ? withVariables(value, env, missing) : value;
  for (const name of missing) {
    problems.push(
      `${describeOrigin(origin)} names the variable ${name}, which is not set: set it, or write \${${name}:-default}`,
    );
  }
  if (missing.length > 0) return;
  const text = isEmpty ? "" : FORMS[form].textOf(filled);
  if (text === null) {
    problems.push(`${describeOrigin(origin)} has the wrong type: write ${FORMS[form].expected}`);
    return;
  }
  if (text === "" && setting !== "OUTBOX_SCHEMAS") return;
  const content = isFile ? textOfFile(describeOrigin(origin), text, readText, problems) : text;
  if (content !== null) builder.add(setting, { origin, value: content });
}

/** Replaces `${NAME}` and `${NAME:-default}` in all texts of a value; `$${` stands for a literal `${`. */
function withVariables(value: unknown, env: Environment, missing: string[]): unknown {
  if (Array.isArray(value)) return value.map((item) => withVariables(item, env, missing));
  if (isGroup(value)) {
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, withVariables(item, env, missing)]));
  }
  if (typeof value !== "string") return value;
  return value.replaceAll(/\$\$\{|\$\{([A-Za-z_]\w*)(?::-([^}]*))?\}/g, (whole, name?: string, instead?: string) => {
    if (name === undefined) return whole.slice(1);
    const found = env[name] || instead;
    if (found === undefined) missing.push(name);
    return found ?? "";
  });
}

/** Converts a value of the file to the text that the environment would hold; null for a wrong type. */
const FORMS: Readonly<Record<Form, { expected: string; textOf: (value: unknown) => string | null }>> = {
  text: { expected: "a string; put a number in quotes", textOf: (value) => (typeof value === "string" ? value : null) },
  number: { expected: "a number", textOf: numberText },
  duration: { expected: "a duration such as 500ms, 10s or 3m", textOf: numberText },
  flag: {
    expected: "true or false",
    textOf: (value) => (typeof value === "boolean" || typeof value === "string" ? String(value) : null),
  },
  list: {
    expected: "a list of strings",
    textOf: (value) => {
      if (typeof value === "string") return value;
      if (!Array.isArray(value) || value.some((item) => typeof item !== "string")) return null;
      return value.length === 0 ? "" : JSON.stringify(value);
    },
  },
  pairs: {
    expected: "a map from names to strings",
    textOf: (value) => {
      if (typeof value === "string") return value;
      return isGroup(value) && Object.values(value).every((item) => typeof item === "string")
        ? JSON.stringify(value)
        : null;
    },
  },
  structure: { expected: "a list or a group, as shown in the reference", textOf: structureText },
};

function structureText(value: unknown): string | null {
  if (typeof value === "string") return value;
  return typeof value === "object" && value !== null ? JSON.stringify(value) : null;
}

function numberText(value: unknown): string | null {
  return typeof value === "number" || typeof value === "string" ? String(value) : null;
}

function isGroup(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isGroupPath(path: string): boolean {
  return [...FILE_PATHS.keys()].some((known) => known.startsWith(`${path}.`));
}

function childrenOf(keys: readonly string[]): string[] {
  const start = keys.map((key) => `${key}.`).join("");
  const inside = [...FILE_PATHS.keys()].filter((path) => path.startsWith(start));
  return [...new Set(inside.map((path) => path.slice(start.length).split(".")[0]!))];
}

function hintFor(above: readonly string[], key: string): string {
  const byVariable = ENVIRONMENT_NAMES.get(key);
  if (byVariable !== undefined) return `write ${settingOf(byVariable.setting).path}`;
  const siblings = childrenOf(above);
  const nearest = nearestName(key, siblings, Math.max(2, Math.floor(key.length / 3)));
  if (nearest !== undefined) return `did you mean ${[...above, nearest].join(".")}?`;
  const elsewhere = pathsTo(key);
  if (elsewhere.length > 0) return `did you mean ${orList(elsewhere)}?`;
  return `${above.length === 0 ? "the file" : above.join(".")} can have ${siblings.join(", ")}`;
}

/** All paths in which the key exists. */
function pathsTo(key: string): string[] {
  const paths = [...FILE_PATHS.keys()].map((path) => path.split("."));
  const found = paths
    .filter((keys) => keys.includes(key))
    .map((keys) => keys.slice(0, keys.indexOf(key) + 1).join("."));
  return [...new Set(found)];
}
