import { destinationConfig } from "./destination-config.ts";
import type { DestinationConfig } from "./destinations/destination-scheme.ts";
import { destinationLevel } from "./read-settings.ts";
import { SETTING_NAMES, type SettingName, type Settings, settingOf } from "./settings.ts";
import type { WrittenDestinations } from "./written-routes.ts";

/** Settings of a destination that count for those with a name too, unless they say otherwise themselves. */
const COMMON: readonly SettingName[] = ["BATCH_SIZE", "TRANSACTION_SIZE"];

/** Each names a destination by itself. */
const SINGLE = ["OUTBOX_DESTINATION", "KAFKA_BROKERS", "RABBITMQ_HOST"] as const;

/** All destinations: those of the list, or the one that the settings name. */
export function destinationsConfig(settings: Settings, problems: string[]): readonly DestinationConfig[] {
  const { OUTBOX_DESTINATIONS } = settings;
  if (OUTBOX_DESTINATIONS === undefined) {
    const only = destinationConfig(settings, problems);
    return only === null ? [] : [withLimits(only, settings)];
  }
  const other = SINGLE.find((name) => settings[name] !== undefined);
  if (other !== undefined) {
    problems.push(`OUTBOX_DESTINATIONS and ${other} both name destinations: put all of them into OUTBOX_DESTINATIONS`);
  }
  const entries = Object.entries(OUTBOX_DESTINATIONS);
  if (entries.length === 0) problems.push("OUTBOX_DESTINATIONS is empty: name at least one destination");
  return entries.flatMap(([name, entry]) => named(name, entry, settings, problems) ?? []);
}

function named(
  name: string,
  entry: WrittenDestinations[string],
  common: Settings,
  problems: string[],
): DestinationConfig | null {
  const own: string[] = [];
  const settings = ownSettings(entry, common, own);
  const config = own.length > 0 ? null : destinationConfig(settings, own, name);
  problems.push(...own.map((problem) => inItsPlace(problem, name)));
  return config === null ? null : withLimits(config, settings);
}

/** What the entry says, over what counts for all destinations. */
function ownSettings(entry: WrittenDestinations[string], common: Settings, problems: string[]): Settings {
  const parsed = [...destinationLevel(entry, problems)].map(([name, [written]]) => {
    const { data, error } = settingOf(name).type.safeParse(written?.value);
    for (const { message } of error?.issues ?? []) problems.push(`${name}: ${message}`);
    return [name, data] as const;
  });
  const general = SETTING_NAMES.filter((name) => COMMON.includes(name) || !isOfDestination(name));
  return {
    ...Object.fromEntries(general.map((name) => [name, common[name]])),
    ...Object.fromEntries(parsed),
  } as Settings;
}

function isOfDestination(name: SettingName): boolean {
  return settingOf(name).path.startsWith("destination.");
}

const SETTING_IN_TEXT = new RegExp(`\\b(?:${SETTING_NAMES.join("|")})\\b`, "g");

/** Complaints about an entry name settings as the environment does; here they stand in the entry. */
function inItsPlace(problem: string, entry: string): string {
  const text = problem.replaceAll(SETTING_IN_TEXT, (name) => {
    const known = name as SettingName;
    return isOfDestination(known) ? settingOf(known).path : name;
  });
  return text.replaceAll(/\bdestination\./g, `destinations.${entry}.`).replaceAll(" in  is ", " is ");
}

function withLimits(config: DestinationConfig, settings: Settings): DestinationConfig {
  const { RATE_LIMIT, TRANSACTION_SIZE, BATCH_SIZE } = settings;
  return {
    ...config,
    ratePerSecond: RATE_LIMIT ?? null,
    limits: {
      ...(BATCH_SIZE === undefined ? {} : { batchSize: BATCH_SIZE }),
      ...(TRANSACTION_SIZE === undefined ? {} : { transactionSize: TRANSACTION_SIZE }),
    },
  };
}
