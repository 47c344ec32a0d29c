import { nearestName } from "../../routing/nearest-name.ts";
import { ENVIRONMENT_NAMES } from "../settings/names.ts";
import type { ConfigFile } from "./config-file.ts";
import type { Environment, ReadText } from "./environment.ts";
import { textOfFile } from "./environment.ts";
import { describeOrigin, type Level, LevelBuilder, type Origin } from "./written.ts";

/** The file of a .NET worker, and of its environments: `appsettings.Production.json`. */
export const DOTNET_FILE = "appsettings.json";
const DOTNET_NAME = /^appsettings(?:\.[\w-]+)?\.json$/i;

/** Whether a path names such a file. */
export function isDotnetFile(path: string): boolean {
  return DOTNET_NAME.test(path.split(/[\\/]/).at(-1) ?? "");
}

/** The file with the settings of the worker's environment, which override those of the file itself. */
export function dotnetFileOf(file: string, env: Environment): string {
  const environment = env.DOTNET_ENVIRONMENT || env.ASPNETCORE_ENVIRONMENT || "Production";
  return file.replace(/\.json$/i, `.${environment}.json`);
}

/** JSON as .NET reads it: comments and a comma after the last item are allowed. Keeps the lines. */
export function strictJson(text: string): string {
  const bare = text.replaceAll(/"(?:[^"\\\n]|\\.)*"|\/\/[^\n]*|\/\*[\s\S]*?\*\//g, (part) =>
    part.startsWith('"') ? part : part.replaceAll(/[^\n]/g, " "),
  );
  return bare.replaceAll(/"(?:[^"\\\n]|\\.)*"|,(?=\s*[}\]])/g, (part) => (part === "," ? " " : part));
}

interface Reading {
  readonly file: ConfigFile;
  readonly readText: ReadText;
  readonly problems: string[];
  readonly builder: LevelBuilder;
}

/**
 * The settings in a worker's files, by the names that they have in its environment: `RabbitMq: { Port }` is
 * `RabbitMq__Port`, in any letter case. Other keys belong to other parts of the worker.
 */
export function dotnetLevel(files: readonly ConfigFile[], readText: ReadText, problems: string[]): Level {
  const builder = new LevelBuilder();
  for (const file of files) {
    const own = new LevelBuilder();
    readSection({ file, readText, problems, builder: own }, [], file.value);
    for (const [name, written] of own.level) {
      if (!builder.level.has(name)) for (const it of written) builder.add(name, it);
    }
  }
  return builder.level;
}

function readSection(reading: Reading, keys: readonly string[], value: unknown): void {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) {
    for (const [key, inside] of Object.entries(value)) readSection(reading, [...keys, key], inside);
    return;
  }
  // As in the environment, an empty value counts as unset.
  if (value === null || value === "" || typeof value === "object") return;
  const { builder, file, problems, readText } = reading;
  const origin: Origin = { kind: "file", name: keys.join(":"), file: file.name, line: file.lineOf(keys) };
  const known = nameOf(keys);
  if (known === undefined) {
    const nearest = OWN_SECTION.test(keys[0] ?? "") ? nearestName(keys.join("__"), SECTION_NAMES, 2) : undefined;
    const meant = nearest?.replaceAll("__", ":");
    if (meant !== undefined) problems.push(`${describeOrigin(origin)} is not a setting: did you mean ${meant}?`);
    return;
  }
  const { convert, isFile, setting } = known;
  const text = isFile ? textOfFile(describeOrigin(origin), String(value), readText, problems) : String(value);
  if (text !== null) builder.add(setting, { origin, value: convert(text) });
}

const OWN_SECTION = /^OutboxDispatcher$/i;
const SECTION_NAMES = [...ENVIRONMENT_NAMES.keys()].filter((name) => name.includes("__"));
const BY_LOWER_CASE = new Map(SECTION_NAMES.map((name) => [name.toLowerCase(), name]));

/** A key without a section is a setting only by its exact name: others, such as Host, mean something else. */
function nameOf(keys: readonly string[]) {
  const written = keys.join("__");
  const name = keys.length === 1 ? written : BY_LOWER_CASE.get(written.toLowerCase());
  return name === undefined ? undefined : ENVIRONMENT_NAMES.get(name);
}
