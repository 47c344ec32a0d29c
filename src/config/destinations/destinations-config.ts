import { addressOfType } from "../reading/open-outbox-variables.ts";
import { destinationLevel } from "../reading/read-settings.ts";
import type { WrittenDestinations } from "../reading/written-routes.ts";
import { SETTING_NAMES, type SettingName, type Settings, settingOf } from "../settings/settings.ts";
import { destinationConfig } from "./destination-config.ts";
import type { DestinationConfig } from "./destination-scheme.ts";

/** Destination settings that also apply to named destinations, unless these override them. */
const COMMON: readonly SettingName[] = ["BATCH_SIZE", "TRANSACTION_SIZE"];

/** Each of these names a single destination. */
const SINGLE = ["OUTBOX_DESTINATION", "KAFKA_BROKERS", "RABBITMQ_HOST"] as const;

/** Whether the settings name any destination. */
export function hasDestination(settings: Settings): boolean {
  const { OUTBOX_DESTINATIONS, PUBLISHER_TYPE } = settings;
  if (OUTBOX_DESTINATIONS !== undefined || addressOfType(PUBLISHER_TYPE) !== null) return true;
  return SINGLE.some((name) => settings[name] !== undefined);
}

/** All destinations: those of OUTBOX_DESTINATIONS, or the single one. */
export function destinationsConfig(settings: Settings, problems: string[]): readonly DestinationConfig[] {
  const { OUTBOX_DESTINATIONS } = settings;
  if (OUTBOX_DESTINATIONS === undefined) {
    const only = destinationConfig(settings, problems);
    return only === null ? [] : [withLimits(only, settings)];
  }
  const byType = addressOfType(settings.PUBLISHER_TYPE) === null ? undefined : "PUBLISHER_TYPE";
  const other = SINGLE.find((name) => settings[name] !== undefined) ?? byType;
  if (other !== undefined) {
    problems.push(`OUTBOX_DESTINATIONS and ${other} both name destinations: list all of them in OUTBOX_DESTINATIONS`);
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
  problems.push(...own.map((problem) => withEntryKeys(problem, name)));
  return config === null ? null : withLimits(config, settings);
}

/** The entry's settings, with the common ones as defaults. */
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

/** Problems name settings as the environment does; an entry has keys instead. */
function withEntryKeys(problem: string, entry: string): string {
  const text = problem.replaceAll(SETTING_IN_TEXT, (name) => {
    const known = name as SettingName;
    return isOfDestination(known) ? settingOf(known).path : name;
  });
  return text.replaceAll(/\bdestination\./g, `destinations.${entry}.`).replaceAll(" in  is ", " is ");
}

function withLimits(config: DestinationConfig, settings: Settings): DestinationConfig {
  const { BATCH_SIZE, RATE_LIMIT } = settings;
  // One publish to an exactly-once destination is one transaction.
  const { TRANSACTION_SIZE = BATCH_SIZE } = settings;
  return {
    ...config,
    ratePerSecond: RATE_LIMIT ?? null,
    limits: {
      ...(BATCH_SIZE === undefined ? {} : { batchSize: BATCH_SIZE }),
      ...(TRANSACTION_SIZE === undefined ? {} : { transactionSize: TRANSACTION_SIZE }),
    },
  };
}
