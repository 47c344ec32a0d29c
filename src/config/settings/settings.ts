import { z } from "zod";
import { accessSettings } from "./access-settings.ts";
import { destinationSettings, failureSettings, kafkaSettings, sourceSettings } from "./delivery-settings.ts";
import { dynamodbSettings } from "./dynamodb-settings.ts";
import { httpSettings } from "./http-settings.ts";
import { logSettings } from "./log-settings.ts";
import { natsSettings } from "./nats-settings.ts";
import { rabbitSettings } from "./rabbitmq-settings.ts";
import { recordSettings } from "./record-settings.ts";
import { redisSettings } from "./redis-settings.ts";
import { requestsSettings } from "./requests-settings.ts";
import { databaseSettings, processSettings, telemetrySettings } from "./service-settings.ts";
import type { Setting } from "./setting.ts";
import { sqsSettings } from "./sqs-settings.ts";

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
