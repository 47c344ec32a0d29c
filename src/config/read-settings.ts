import { readFileSync } from "node:fs";
import { secretsInAddress, secretsInValue } from "./address-secrets.ts";
import type { ConfigFile } from "./config-file.ts";
import { ConfigProblems } from "./config-problems.ts";
import { type Environment, environmentLevel, type ReadText, strangersIn } from "./environment.ts";
import { fileLevel } from "./file-level.ts";
import { flagLevel } from "./flags.ts";
import { SETTING_NAMES, type SettingName, type Settings, settingOf, settingsSchema } from "./settings.ts";
import { type Level, type Origin, placeOf, type Written } from "./written.ts";
import type { WrittenDestinations } from "./written-routes.ts";

interface SettingsSources {
  readonly env: Environment;
  readonly file?: ConfigFile | null;
  /** `name=value` each. */
  readonly flags?: readonly string[];
  readonly readText?: ReadText;
}

export interface ReadSettings {
  readonly settings: Settings;
  /** Of all that somebody has set. */
  readonly origins: ReadonlyMap<SettingName, Origin>;
  /** Values that no log line and no error may show. */
  readonly secrets: readonly string[];
  /** What looks like a mistake and stops nothing. */
  readonly warnings: readonly string[];
  /** The config file's name, where there is one. */
  readonly file: string | null;
  /** Folders from which relative paths are meant: the config file's, where there is one, and the working folder. */
  readonly places?: readonly string[];
}

/** Settings of which only one can be in force: what a higher place says of one silences a lower place on the others. */
const RIVALS: readonly SettingName[] = ["OUTBOX_DESTINATION", "KAFKA_BROKERS", "RABBITMQ_HOST", "OUTBOX_DESTINATIONS"];

/**
 * Reads and checks all settings: flags win over the environment, that over the file, that over the defaults. Throws
 * ConfigProblems with every fault at once.
 */
export function readSettings({ env, file = null, flags = [], readText = readUtf8 }: SettingsSources): ReadSettings {
  const problems: string[] = [];
  const levels = [
    flagLevel(flags, readText, problems),
    environmentLevel(env, readText, problems),
    file === null ? new Map() : fileLevel(file, env, readText, problems),
  ];
  for (const level of levels) problems.push(...contradictionsIn(level));
  const written = highestOf(levels);
  const texts = Object.fromEntries([...written].map(([name, { value }]) => [name, value]));
  const parsed = settingsSchema.safeParse(texts);
  for (const { path, message } of parsed.error?.issues ?? []) {
    const name = path[0] as SettingName;
    problems.push(faultOf(name, written.get(name), message));
  }
  if (!parsed.success || problems.length > 0) throw new ConfigProblems(problems);
  return {
    settings: parsed.data,
    origins: new Map([...written].map(([name, { origin }]) => [name, origin])),
    secrets: [...new Set([...written].flatMap(([name, { value }]) => secretsIn(name, value)))],
    warnings: strangersIn(env),
    file: file?.name ?? null,
  };
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
      if (first === undefined || written.has(name) || (isDestinationSet && RIVALS.includes(name))) continue;
      written.set(name, first);
    }
    isDestinationSet ||= RIVALS.some((name) => level.has(name));
  }
  return written;
}

/** A name and its alias may say the same thing, also in other words: 500 and 500ms. */
function contradictionsIn(level: Level): string[] {
  return [...level].flatMap(([name, [first, ...others]]) => {
    const meaning = ({ value }: Written) => JSON.stringify(settingOf(name).type.safeParse(value).data ?? value);
    const other = others.find((it) => first !== undefined && meaning(it) !== meaning(first));
    if (first === undefined || other === undefined) return [];
    const [one, two] = [placeOf(first.origin), placeOf(other.origin)];
    if (one === two) return [`${one} is there twice with different values: keep one of them`];
    return [`${one} and ${two} mean the same setting and differ: keep one of them`];
  });
}

function faultOf(name: SettingName, written: Written | undefined, message: string): string {
  if (written === undefined) return `${name}: ${message}`;
  const shown =
    settingOf(name).secret === null ? `is ${JSON.stringify(written.value.slice(0, 200))}` : "cannot be used";
  // What an alias says in seconds is asked for in seconds.
  const asked = /Seconds$/.test(written.origin.name) ? message.replace("milliseconds", "seconds") : message;
  return `${placeOf(written.origin)} ${shown}: ${asked}`;
}

/** Where the whole cannot be read, nothing of it is used. */
function secretsInDestinations(value: string): string[] {
  const { data } = settingOf("OUTBOX_DESTINATIONS").type.safeParse(value);
  return Object.values((data ?? {}) as WrittenDestinations).flatMap((entry) =>
    [...destinationLevel(entry, [])].flatMap(([name, written]) => written.flatMap((it) => secretsIn(name, it.value))),
  );
}

/** What an entry of `destinations` says, as if it stood in `destination`. */
export function destinationLevel(entry: Readonly<Record<string, unknown>>, problems: string[]): Level {
  const file = { name: "", value: { destination: entry }, hasVariables: false, lineOf: () => null };
  return fileLevel(file, {}, readUtf8, problems);
}

/** Of an address its secret parts, of headers and lists each value, beside the whole. */
function secretsIn(name: SettingName, value: string): string[] {
  const { secret, type } = settingOf(name);
  if (secret === null) return [];
  if (secret === true) return [value, ...secretsInValue(type.safeParse(value).data)];
  if (secret === "parts") return secretsInDestinations(value);
  return secretsInAddress(value);
}
