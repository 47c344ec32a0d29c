import { dirname, resolve } from "node:path";
import { reasonOf } from "../core/errors.ts";
import { quoteIdentifier } from "../postgres/identifiers.ts";
import type { DatabaseOptions } from "../postgres/pool.ts";
import { readConfigFile } from "./config-file.ts";
import { ConfigProblems } from "./config-problems.ts";
import { databaseConfig } from "./database-config.ts";
import { CONFIG_FILE_VARIABLE, type Environment } from "./environment.ts";
import { loadIntentRelays } from "./intent-relays.ts";
import { type LogsConfig, logsConfig } from "./logs-config.ts";
import { type ReadSettings, readSettings } from "./read-settings.ts";
import { type ServiceConfig, serviceConfig } from "./service-config.ts";
import { SETTING_NAMES, type SettingName, settingOf } from "./settings.ts";

/** Where settings can come from. */
export interface ConfigSources {
  readonly env: Environment;
  /** The folder in which a config file is looked for. */
  readonly cwd: string;
  /** A config file that was named on the command line. */
  readonly file?: string | undefined;
  /** `name=value` each, from the command line. */
  readonly flags?: readonly string[];
}

interface LoadedConfig {
  readonly config: ServiceConfig;
  readonly read: ReadSettings;
}

interface DatabaseConfig {
  readonly database: DatabaseOptions;
  readonly relaySchema: string;
  /** Values that nothing that is printed may show. */
  readonly secrets: readonly string[];
}

/** All that the service needs. Throws ConfigProblems with everything that is wrong. */
export async function loadConfig(sources: ConfigSources): Promise<LoadedConfig> {
  const read = await loadSettings(sources);
  return { config: await checkedService(read), read };
}

/** The values alone: each is right by itself, and perhaps some are missing. */
export async function loadSettings({ env, cwd, file, flags = [] }: ConfigSources): Promise<ReadSettings> {
  const named = file ?? (env[CONFIG_FILE_VARIABLE] || undefined);
  const read = readSettings({ env, file: await readConfigFile(cwd, named), flags });
  return { ...read, places: named === undefined ? [cwd] : [dirname(resolve(cwd, named)), cwd] };
}

/** With the intent relays, which are programs and are loaded here. */
export async function checkedService(read: ReadSettings): Promise<ServiceConfig> {
  const { origins, places = [], settings } = read;
  // A path in the environment or on the command line begins where they were written.
  const isInFile =
    origins.get("OUTBOX_INTENTS")?.kind !== "environment" && origins.get("OUTBOX_INTENTS")?.kind !== "flag";
  const relays = await loadIntentRelays(settings.OUTBOX_INTENTS, isInFile ? places : places.toReversed());
  return naming(read, () => serviceConfig(read, relays));
}

/**
 * What a command needs that only talks to the database: neither sources nor a destination. Printing what would be done
 * needs no database either.
 */
export async function loadDatabaseConfig(
  sources: ConfigSources,
  { isOffline = false }: { readonly isOffline?: boolean } = {},
): Promise<DatabaseConfig> {
  const read = await loadSettings(sources);
  return naming(read, () => {
    const problems: string[] = [];
    const database = databaseConfig(read.settings, problems);
    const relaySchema = read.settings.DATABASE_SCHEMA;
    if (isOffline) problems.length = 0;
    try {
      quoteIdentifier(relaySchema);
    } catch (error) {
      problems.push(`DATABASE_SCHEMA: ${reasonOf(error)}`);
    }
    if (problems.length > 0) throw new ConfigProblems(problems);
    return { database, relaySchema, secrets: read.secrets };
  });
}

/** The logs that the settings name, for a command that creates them. */
export async function loadLogsConfig(sources: ConfigSources): Promise<LogsConfig> {
  const read = await loadSettings(sources);
  return naming(read, () => {
    const problems: string[] = [];
    const logs = logsConfig(read.settings, problems);
    if (problems.length > 0) throw new ConfigProblems(problems);
    return logs;
  });
}

/** A complaint names settings as the environment does. Whoever wrote them in other words is told these too. */
function naming<T>(read: ReadSettings, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (error instanceof ConfigProblems) throw new ConfigProblems(error.problems.map((it) => inOwnWords(it, read)));
    throw error;
  }
}

const NAME_IN_TEXT = new RegExp(`\\b(?:${SETTING_NAMES.join("|")})\\b(?!=)`, "g");

function inOwnWords(problem: string, { origins, file }: ReadSettings): string {
  const told = new Set<string>();
  return problem.replaceAll(NAME_IN_TEXT, (name) => {
    const key = file === null ? name : settingOf(name as SettingName).path;
    const own = origins.get(name as SettingName)?.name ?? key;
    if (told.has(name) || own === name) return name;
    told.add(name);
    return `${name} (${own})`;
  });
}
