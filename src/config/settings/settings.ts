import { z } from "zod";
import { accessSettings } from "./access-settings.ts";
import { destinationSettings, failureSettings, kafkaSettings, sourceSettings } from "./delivery-settings.ts";
import { redisSettings, sqsSettings } from "./destination-settings.ts";
import { dynamodbSettings } from "./dynamodb-settings.ts";
import { httpSettings } from "./http-settings.ts";
import { logSettings } from "./log-settings.ts";
import { natsSettings } from "./nats-settings.ts";
import { rabbitSettings } from "./rabbitmq-settings.ts";
import { recordSettings } from "./record-settings.ts";
import { requestsSettings } from "./requests-settings.ts";
import { databaseSettings, processSettings, telemetrySettings } from "./service-settings.ts";
import type { Setting } from "./setting.ts";

/** Every setting of the service, by environment name. Help, reference and validation derive from it. */
export const SETTINGS = {
  ...databaseSettings,
  ...processSettings,
  ...accessSettings,
  ...telemetrySettings,
  ...recordSettings,
  ...sourceSettings,
  ...logSettings,
  ...requestsSettings,
  ...dynamodbSettings,
  ...destinationSettings,
  ...kafkaSettings,
  ...rabbitSettings,
  ...redisSettings,
  ...natsSettings,
  ...httpSettings,
  ...sqsSettings,
  ...failureSettings,
};

type Table = typeof SETTINGS;
/** The environment name of a setting. */
export type SettingName = keyof Table;

/** The names of all settings, in the order of the reference. */
export const SETTING_NAMES = Object.keys(SETTINGS) as SettingName[];

/** The declaration of a setting. */
export function settingOf(name: SettingName): Setting<string, z.ZodType> {
  return SETTINGS[name];
}

/** Validates each value by itself. */
export const settingsSchema = z.object(
  Object.fromEntries(SETTING_NAMES.map((name) => [name, SETTINGS[name].type])) as {
    readonly [Name in SettingName]: Table[Name]["type"];
  },
);

/** The values of all settings. */
export type Settings = z.output<typeof settingsSchema>;

/** All settings as a list for the command line's help. */
export function settingsHelp(): string {
  const width = Math.max(...SETTING_NAMES.map((name) => name.length)) + 2;
  const lines = SETTING_NAMES.map((name) => {
    const { aliases, description, path, secret } = settingOf(name);
    const also = aliases.length === 0 ? "" : ` (also ${aliases.map((alias) => alias.name).join(", ")})`;
    const file = secret === null ? "" : ` (or ${name}_FILE)`;
    return `  ${name.padEnd(width)}${description}${also}${file} [${path}]`;
  });
  return [
    "Settings, as environment variables, --set options or keys of a config file (`config print` shows the values in force):",
    ...lines,
  ].join("\n");
}
