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

/** Every setting of the service by its name in the environment. Help, reference and checks are made from it. */
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
export type SettingName = keyof Table;

export const SETTING_NAMES = Object.keys(SETTINGS) as SettingName[];

export function settingOf(name: SettingName): Setting<string, z.ZodType> {
  return SETTINGS[name];
}

/** The values as the program uses them, checked one by one. */
export const settingsSchema = z.object(
  Object.fromEntries(SETTING_NAMES.map((name) => [name, SETTINGS[name].type])) as {
    readonly [Name in SettingName]: Table[Name]["type"];
  },
);

export type Settings = z.output<typeof settingsSchema>;
