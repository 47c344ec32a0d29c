import { readFileSync } from "node:fs";
import { nearestName } from "../../routing/nearest-name.ts";
import { ENVIRONMENT_NAMES, FILE_PATHS } from "../settings/names.ts";
import { SETTING_NAMES, type SettingName, type Settings, settingOf, settingsSchema } from "../settings/settings.ts";
import { pathText } from "../settings/value-types.ts";
import { secretsInAddress, secretsInValue } from "./address-secrets.ts";
import type { ConfigFile } from "./config-file.ts";
import { dotnetLevel } from "./dotnet-settings.ts";
import { type Environment, environmentLevel, type ReadText, textOfFile, unknownSettingsIn } from "./environment.ts";
import { fileLevel } from "./file-level.ts";
import { addressOfType } from "./open-outbox-variables.ts";
import { type Fault, PartlyRead, readablePart } from "./partly-read.ts";
import { describeOrigin, type Level, LevelBuilder, type Origin, type Written } from "./written.ts";
import type { WrittenDestinations } from "./written-routes.ts";

interface SettingsSources {
  readonly env: Environment;
  readonly file?: ConfigFile | null;
  /** `name=value` each. */
  readonly flags?: readonly string[];
  readonly readText?: ReadText;
}

/** The settings, with where they came from. */
export interface ReadSettings {
  readonly settings: Settings;
  /** Of every setting that is set. */
  readonly origins: ReadonlyMap<SettingName, Origin>;
  /** Values that no log line and no error may show. */
  readonly secrets: readonly string[];
  /** Probable mistakes that do not prevent the start. */
  readonly warnings: readonly string[];
  /** The config file's name, if there is one. */
  readonly file: string | null;
  /** The line of a key in that file; null if unknown. */
  readonly lineOf?: ConfigFile["lineOf"];
  /** Folders for relative paths: the config file's, if there is one, and the working folder. */
  readonly baseFolders?: readonly string[];
}

/** Mutually exclusive settings: a level that sets one of them overrides all of them in lower levels. */
const EXCLUSIVE: readonly SettingName[] = [
  "OUTBOX_DESTINATION",
  "KAFKA_BROKERS",
  "RABBITMQ_HOST",
  "OUTBOX_DESTINATIONS",
];

/**
 * Reads and validates all settings. Flags override the environment, which overrides the file, which overrides the
 * defaults. Throws ConfigProblems with all problems at once.
 */
export function readSettings({ env, file = null, flags = [], readText = readUtf8 }: SettingsSources): ReadSettings {
  const problems: string[] = [];
  const levels = [
    flagLevel(flags, readText, problems),
    environmentLevel(env, readText, problems),
    levelOf(file, env, readText, problems),
  ];
  for (const level of levels) problems.push(...contradictionsIn(level));
  const written = highestOf(levels);
  const texts = Object.fromEntries([...written].map(([name, { value }]) => [name, value]));
  const parsed = settingsSchema.safeParse(texts);
  const faults = (parsed.error?.issues ?? []).map(({ path, message }): Fault => {
    const [name, ...inside] = path as [SettingName, ...PropertyKey[]];
    return { name, inside, message };
  });
  for (const { inside, message, name } of faults) {
    const found = written.get(name);
    if (inside.length === 0) problems.push(faultOf(name, found, message));
    else problems.push(`${itemLocation(name, found, inside, file)}${message}`);
  }
  const read = {
    origins: new Map([...written].map(([name, { origin }]) => [name, origin])),
    secrets: [...new Set([...written].flatMap(([name, { value }]) => secretsIn(name, value)))],
    warnings: unknownSettingsIn(env),
    file: file?.name ?? null,
    ...(file === null ? {} : { lineOf: file.lineOf }),
  };
  if (parsed.success && problems.length === 0) return { ...read, settings: parsed.data };
  const { faultyItems, rest } = readablePart(texts, faults);
  const settings = settingsSchema.safeParse(rest).data;
  const left = settings === undefined ? null : { read: { ...read, settings }, faultyItems };
  throw new PartlyRead(problems, left);
}

function levelOf(file: ConfigFile | null, env: Environment, readText: ReadText, problems: string[]): Level {
  if (file === null) return new Map();
  if (file.dotnet !== undefined) return dotnetLevel(file.dotnet, readText, problems);
  return fileLevel(file, env, readText, problems);
}

function readUtf8(path: string): string {
  return readFileSync(path, "utf8");
}

function highestOf(levels: readonly Level[]): Map<SettingName, Written> {
  const written = new Map<SettingName, Written>();
  let isDestinationSet = false;
  for (const level of levels) {
    for (const name of SETTING_NAMES) {
      const first = level.get(name)?.[0];
      const isOfDestination = EXCLUSIVE.includes(name) || name === "PUBLISHER_TYPE";
      if (first === undefined || written.has(name) || (isDestinationSet && isOfDestination)) continue;
      written.set(name, first);
    }
    const type = level.get("PUBLISHER_TYPE")?.[0]?.value;
    isDestinationSet ||= EXCLUSIVE.some((name) => level.has(name)) || addressOfType(type) !== null;
  }
  return written;
}

/** A name and its alias can have the same value, also written differently: 500 and 500ms. */
function contradictionsIn(level: Level): string[] {
  return [...level].flatMap(([name, [first, ...others]]) => {
    const meaning = ({ value }: Written) => JSON.stringify(settingOf(name).type.safeParse(value).data ?? value);
    const other = others.find((it) => first !== undefined && meaning(it) !== meaning(first));
    if (first === undefined || other === undefined) return [];
    const [one, two] = [describeOrigin(first.origin), describeOrigin(other.origin)];
    if (one === two) return [`${one} is set twice with different values: keep one of them`];
    return [`${one} and ${two} are the same setting but differ: keep one of them`];
  });
}

/** The location of an item of a list or a member of a group, with its own line. */
function itemLocation(
  name: SettingName,
  written: Written | undefined,
  inside: readonly PropertyKey[],
  file: ConfigFile | null,
): string {
  if (written === undefined) return `${name}${pathText(inside)}`;
  const { origin } = written;
  const own = `${origin.name}${pathText(inside)}`;
  if (origin.kind !== "file" || file === null) return describeOrigin({ ...origin, name: own });
  const keys = [...origin.name.split("."), ...inside.map(String)];
  // A missing or misspelt key has no line; its parent has one.
  const line = file.lineOf(keys) ?? origin.line;
  return describeOrigin({ ...origin, name: own, line });
}

function faultOf(name: SettingName, written: Written | undefined, message: string): string {
  if (written === undefined) return `${name}: ${message}`;
  const shown = settingOf(name).secret === null ? `is ${JSON.stringify(written.value.slice(0, 200))}` : "is invalid";
  // An alias in seconds asks for seconds.
  const asked = /Seconds$/.test(written.origin.name) ? message.replace("milliseconds", "seconds") : message;
  return `${describeOrigin(written.origin)} ${shown}: ${asked}`;
}

/** If the value cannot be parsed, it is not used, so it holds no secrets in use. */
function secretsInDestinations(value: string): string[] {
  const { data } = settingOf("OUTBOX_DESTINATIONS").type.safeParse(value);
  return Object.values((data ?? {}) as WrittenDestinations).flatMap((entry) =>
    [...destinationLevel(entry, [])].flatMap(([name, written]) => written.flatMap((it) => secretsIn(name, it.value))),
  );
}

/** The settings of an entry of `destinations`, as if they were in `destination`. */
export function destinationLevel(entry: Readonly<Record<string, unknown>>, problems: string[]): Level {
  const file = { name: "", value: { destination: entry }, hasVariables: false, lineOf: () => null };
  return fileLevel(file, {}, readUtf8, problems);
}

/** The secret parts of an address, and of headers and lists each value and the whole. */
function secretsIn(name: SettingName, value: string): string[] {
  const { secret, type } = settingOf(name);
  if (secret === null) return [];
  if (secret === true) return [value, ...secretsInValue(type.safeParse(value).data)];
  if (secret === "parts") return secretsInDestinations(value);
  return secretsInAddress(value);
}

/** Reads `--set name=value` options. The name is an environment name or a key of the config file. */
function flagLevel(flags: readonly string[], readText: ReadText, problems: string[]): Level {
  const builder = new LevelBuilder();
  for (const flag of flags) {
    const at = flag.indexOf("=");
    const name = at < 0 ? flag : flag.slice(0, at);
    const known = ENVIRONMENT_NAMES.get(name) ?? FILE_PATHS.get(name);
    if (known === undefined) problems.push(unknownFlag(name));
    else if (at < 0) problems.push(`--set ${name} has no value: write --set ${name}=value`);
    if (known === undefined || at < 0) continue;
    const { setting, isFile, convert } = known;
    const value = flag.slice(at + 1);
    const text = isFile ? textOfFile(`--set ${name}`, value, readText, problems) : value;
    if (text !== null) builder.add(setting, { origin: { kind: "flag", name }, value: convert(text) });
  }
  return builder.level;
}

function unknownFlag(name: string): string {
  const nearest = nearestName(name, [...ENVIRONMENT_NAMES.keys(), ...FILE_PATHS.keys()]);
  const hint = nearest === undefined ? "`outbox-relay config print` lists all settings" : `did you mean ${nearest}?`;
  return `--set ${name} is not a setting: ${hint}`;
}
