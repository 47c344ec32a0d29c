import { dirname, resolve } from "node:path";
import { reasonOf } from "../core/errors.ts";
import { quoteIdentifier } from "../postgres/identifiers.ts";
import type { DatabaseOptions } from "../postgres/pool.ts";
import { destinationsConfig, hasDestination } from "./destinations/destinations-config.ts";
import { readConfigFile } from "./reading/config-file.ts";
import { ConfigProblems } from "./reading/config-problems.ts";
import { CONFIG_FILE_VARIABLE, type Environment } from "./reading/environment.ts";
import { PartlyRead } from "./reading/partly-read.ts";
import { type ReadSettings, readSettings } from "./reading/read-settings.ts";
import { describeOrigin } from "./reading/written.ts";
import { routesConfig } from "./routes-config.ts";
import { type ServiceConfig, serviceConfig } from "./service-config.ts";
import { SETTING_NAMES, type SettingName, settingOf } from "./settings/settings.ts";
import { databaseConfig } from "./sources/database-config.ts";
import { loadIntentRelays } from "./sources/intent-relays.ts";
import { type LogsConfig, logsConfig, subscribersConfig } from "./sources/logs-config.ts";

/** Where settings come from. */
export interface ConfigSources {
  readonly env: Environment;
  /** The folder that is searched for a config file. */
  readonly cwd: string;
  /** The config file that the command line names. */
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
  /** Values that no output may show. */
  readonly secrets: readonly string[];
}

/** Loads everything that the service needs. Throws ConfigProblems with all problems at once. */
export async function loadConfig(sources: ConfigSources, options: LoadOptions = {}): Promise<LoadedConfig> {
  try {
    const read = await loadSettings(sources);
    return { config: await checkedService(read, options), read };
  } catch (error) {
    if (error instanceof PartlyRead) throw new ConfigProblems([...error.problems, ...faultsOfItems(error)]);
    throw error;
  }
}

/** Settings that name destinations: if one of them is invalid, the list of destinations is unknown. */
const DESTINATIONS = ["OUTBOX_DESTINATION", "OUTBOX_DESTINATIONS", "KAFKA_BROKERS", "RABBITMQ_HOST"] as const;

/**
 * Further problems of single routes, subscribers and destinations, although other settings are invalid. Limited to
 * single items: the intent of the invalid settings is unknown, and guessing could report problems that do not exist.
 */
function faultsOfItems({ part }: PartlyRead): readonly string[] {
  if (part === null) return [];
  const { faultyItems, read } = part;
  const { origins, settings } = read;
  const problems: string[] = [];
  const destinations = hasDestination(settings) ? destinationsConfig(settings, problems) : [];
  if (DESTINATIONS.every((name) => !origins.has(name) || settings[name] !== undefined)) {
    routesConfig(settings, destinations, problems);
    subscribersConfig(settings, destinations, problems);
  }
  return problems
    .filter((problem) => ITEM.test(problem) && !faultyItems.some((item) => problem.startsWith(item)))
    .map((problem) => withWrittenNames(problem, read));
}

/** What a command that does not deliver can do without. */
interface LoadOptions {
  readonly mayLackDestination?: boolean;
}

/** Reads the settings. Each value is valid by itself, but required ones can be missing. */
export async function loadSettings({ env, cwd, file, flags = [] }: ConfigSources): Promise<ReadSettings> {
  const named = file ?? (env[CONFIG_FILE_VARIABLE] || undefined);
  const read = readSettings({ env, file: await readConfigFile(cwd, named, env), flags });
  return { ...read, baseFolders: named === undefined ? [cwd] : [dirname(resolve(cwd, named)), cwd] };
}

/** Checks the settings as a whole. Loads the intent relays too, which are programs. */
export async function checkedService(read: ReadSettings, options: LoadOptions = {}): Promise<ServiceConfig> {
  const { origins, baseFolders = [], settings } = read;
  // A path from the environment or the command line is relative to the working folder.
  const isInFile =
    origins.get("OUTBOX_INTENTS")?.kind !== "environment" && origins.get("OUTBOX_INTENTS")?.kind !== "flag";
  const relays = await loadIntentRelays(settings.OUTBOX_INTENTS, isInFile ? baseFolders : baseFolders.toReversed());
  return withProblemNames(read, () => serviceConfig(read, relays, options));
}

/**
 * For commands that need only the database, neither sources nor destinations. `isOffline` is for commands that only
 * print, which need no database either.
 */
export async function loadDatabaseConfig(
  sources: ConfigSources,
  { isOffline = false }: { readonly isOffline?: boolean } = {},
): Promise<DatabaseConfig> {
  const read = await loadSettings(sources);
  return withProblemNames(read, () => {
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

/** The configured logs, for the command that creates them. */
export async function loadLogsConfig(sources: ConfigSources): Promise<LogsConfig> {
  const read = await loadSettings(sources);
  return withProblemNames(read, () => {
    const problems: string[] = [];
    const logs = logsConfig(read.settings, problems);
    if (problems.length > 0) throw new ConfigProblems(problems);
    return logs;
  });
}

/** Problems name settings as the environment does. Adds the names under which they were written. */
function withProblemNames<T>(read: ReadSettings, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (error instanceof ConfigProblems)
      throw new ConfigProblems(error.problems.map((it) => withWrittenNames(it, read)));
    throw error;
  }
}

const NAME_IN_TEXT = new RegExp(`\\b(?:${SETTING_NAMES.join("|")})\\b(?!=)`, "g");

const ITEM = /^(?:(routes|subscribers)\[(\d+)\]|destinations\.([\w-]+))((?:\.\w+)*)/;
const LISTS = { routes: "OUTBOX_ROUTES", subscribers: "OUTBOX_SUBSCRIBERS" } as const;

/** Adds the location: `routes[1].topic in outbox-relay.config.yaml:12`, or the variable that holds the routes. */
function withLocation(problem: string, { lineOf = () => null, origins }: ReadSettings): string {
  return problem.replace(ITEM, (whole, list?: keyof typeof LISTS, index?: string, entry?: string, below = "") => {
    const origin = origins.get(list === undefined ? "OUTBOX_DESTINATIONS" : LISTS[list]);
    if (origin === undefined) return whole;
    const item = list === undefined ? ["destinations", entry ?? ""] : [list, index ?? ""];
    if (origin.kind !== "file") return describeOrigin({ ...origin, name: whole.replace(item[0] ?? "", origin.name) });
    const keys = [...item, ...below.split(".").filter((key: string) => key !== "")];
    // A missing key has no line; its nearest parent has one.
    const lines = keys.map((_, left) => lineOf(keys.slice(0, keys.length - left)));
    return describeOrigin({ ...origin, name: whole, line: lines.find((line) => line !== null) ?? origin.line });
  });
}

function withWrittenNames(plain: string, read: ReadSettings): string {
  const { file, origins } = read;
  const problem = withLocation(plain, read);
  const named = new Set<string>();
  return problem.replaceAll(NAME_IN_TEXT, (name) => {
    const key = file === null ? name : settingOf(name as SettingName).path;
    const own = origins.get(name as SettingName)?.name ?? key;
    if (named.has(name) || own === name) return name;
    named.add(name);
    return `${name} (${own})`;
  });
}
