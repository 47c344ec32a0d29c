import { existsSync, readFileSync, statSync } from "node:fs";
import { extname, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { LineCounter, parseDocument } from "yaml";
import { reasonOf } from "../../core/errors.ts";
import { ConfigProblems } from "./config-problems.ts";
import { DOTNET_FILE, dotnetFileOf, isDotnetFile, strictJson } from "./dotnet-settings.ts";
import type { Environment } from "./environment.ts";

/** A config file as read, not validated yet. */
export interface ConfigFile {
  /** The path as the user wrote it. */
  readonly name: string;
  readonly value: unknown;
  /** Whether `${NAME}` in a text stands for an environment variable. Programs read the environment themselves. */
  readonly hasVariables: boolean;
  /** For the settings of a .NET worker: this file, and the one of its environment first, if there is one. */
  readonly dotnet?: readonly ConfigFile[];
  /** Null where the line is unknown. */
  lineOf(path: readonly string[]): number | null;
}

const BASE_NAME = "outbox-relay.config";
/** The file that `init` writes by default. */
export const DEFAULT_FILE = `${BASE_NAME}.yaml`;
const TEXT_ENDINGS = [".yaml", ".yml", ".json"];
const PROGRAM_ENDINGS = [".ts", ".js", ".mts", ".mjs", ".cjs"];
const FOUND_ENDINGS = [".ts", ".js", ".yaml", ".yml", ".json"];
const BYTES_MAX = 1_000_000;

/** Reads the named file, or the one in the folder; null if there is none. A .NET worker's file is the last choice. */
export async function readConfigFile(
  folder: string,
  named: string | undefined,
  env: Environment = {},
): Promise<ConfigFile | null> {
  if (named !== undefined && isDotnetFile(named)) return readDotnet(folder, named, env);
  if (named !== undefined) return await read(resolve(folder, named), named);
  const found = existingConfigFiles(folder);
  if (found.length > 1) {
    fail(`${found.join(" and ")} both exist in ${folder}: keep one of them, or name one with --config`);
  }
  if (found[0] !== undefined) return await read(join(folder, found[0]), found[0]);
  return existsSync(join(folder, DOTNET_FILE)) ? readDotnet(folder, DOTNET_FILE, env) : null;
}

function readDotnet(folder: string, name: string, env: Environment): ConfigFile {
  const file = readText(resolve(folder, name), name, true, strictJson);
  const ofEnvironment = dotnetFileOf(name, env);
  const path = resolve(folder, ofEnvironment);
  const above = existsSync(path) ? [readText(path, ofEnvironment, true, strictJson)] : [];
  return { ...file, dotnet: [...above, file] };
}

/** The config files in the folder that the relay would find. */
export function existingConfigFiles(folder: string): string[] {
  return FOUND_ENDINGS.map((ending) => `${BASE_NAME}${ending}`).filter((name) => existsSync(join(folder, name)));
}

async function read(path: string, name: string): Promise<ConfigFile> {
  const ending = extname(path).toLowerCase();
  if (PROGRAM_ENDINGS.includes(ending)) return await readProgram(path, name);
  if (TEXT_ENDINGS.includes(ending)) return readText(path, name, ending === ".json");
  return fail(`${name} is not a config file: its name must end with ${[...TEXT_ENDINGS, ".ts"].join(", ")} or .js`);
}

function readText(path: string, name: string, isJson: boolean, clean = (text: string) => text): ConfigFile {
  const text = clean(contentOf(path, name));
  if (text.trim() === "")
    fail(`${name} is empty: add settings, or remove it; \`outbox-relay init\` writes a starter file`);
  if (isJson) requireJson(text, name);
  const lines = new LineCounter();
  // JSON is YAML too, and the YAML parser reports lines and duplicate keys.
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  const [error] = document.errors;
  if (error !== undefined && !(isJson && error.code === "TAB_AS_INDENT")) {
    const { line } = lines.linePos(error.pos[0]);
    const twice = error.code === "DUPLICATE_KEY" ? ": duplicate key, keep one of them" : "";
    fail(`${name}:${line} cannot be read${twice || `: ${error.message.replace(/\s+/g, " ")}`}`);
  }
  return {
    name,
    value: isJson ? JSON.parse(text) : plainValue(document, name),
    hasVariables: true,
    lineOf: (keys) => {
      const node = document.getIn(keys, true) as { range?: readonly number[] | null } | undefined;
      const at = node?.range?.[0];
      return at === undefined ? null : lines.linePos(at).line;
    },
  };
}

/** Fails on references that expand exponentially. */
function plainValue(document: ReturnType<typeof parseDocument>, name: string): unknown {
  try {
    return document.toJS();
  } catch (error) {
    return fail(`${name} cannot be read: ${reasonOf(error)}`);
  }
}

function contentOf(path: string, name: string): string {
  try {
    if (statSync(path).size > BYTES_MAX)
      fail(`${name} has more than ${BYTES_MAX} bytes, which is too large for a config file`);
    return readFileSync(path, "utf8").replace(/^\uFEFF/, "");
  } catch (error) {
    if (error instanceof ConfigProblems) throw error;
    return fail(`${name} cannot be read: ${reasonOf(error)}`);
  }
}

function requireJson(text: string, name: string): void {
  try {
    JSON.parse(text);
  } catch (error) {
    const reason = reasonOf(error);
    const position = /position (\d+)/.exec(reason)?.[1];
    // An error at the end of the text has no position; something is missing there.
    const before = text.slice(0, position === undefined ? text.trimEnd().length : Number(position));
    fail(`${name}:${before.split("\n").length} cannot be read: ${reason}`);
  }
}

/** Node caches modules by URL, so each reload needs a new one. */
let loads = 0;

async function readProgram(path: string, name: string): Promise<ConfigFile> {
  if (!existsSync(path)) fail(`${name} cannot be read: no such file`);
  loads += 1;
  try {
    const address = `${pathToFileURL(path).href}?reading=${loads}`;
    const module = (await import(address)) as { readonly default?: unknown };
    const value = typeof module.default === "function" ? await module.default() : module.default;
    if (value === undefined) fail(`${name} has no default export: write export default defineConfig({ ... })`);
    return { name, value, hasVariables: false, lineOf: () => null };
  } catch (error) {
    if (error instanceof ConfigProblems) throw error;
    return fail(`${name} cannot be loaded: ${reasonOf(error)}`);
  }
}

function fail(problem: string): never {
  throw new ConfigProblems([problem]);
}
