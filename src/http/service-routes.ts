import { type EffectiveSetting, originText, valueText } from "../config/effective-settings.ts";
import { settingOf } from "../config/settings.ts";
import type { Finding } from "../operations/doctor/finding.ts";
import type { ListedLog } from "../operations/log-list.ts";
import { ok, type Route, route } from "./route.ts";
import { configSchema, findingsSchema, logsSchema } from "./schemas/service.ts";

/** What a service tells of its surroundings and settings. */
export interface ServiceFaces {
  /** Readers of logs; none where there are no logs. */
  logs(): Promise<readonly ListedLog[]>;
  /** What the doctor finds. Never slow; a database that is down is a finding too. */
  findings(): Promise<readonly Finding[]>;
  /** Those in force at this moment. */
  settings(): readonly EffectiveSetting[];
}

export function serviceRoutes(faces: ServiceFaces, redact: (text: string) => string): Route[] {
  return [
    route({
      method: "GET",
      path: "/api/v1/logs",
      id: "listLogs",
      summary: "Who reads which log, and how far it is",
      access: "viewer",
      answers: { 200: { description: "All readers of logs", schema: logsSchema } },
      handle: async () => ok({ logs: await faces.logs() }),
    }),
    route({
      method: "GET",
      path: "/api/v1/doctor",
      id: "doctor",
      summary: "What is wrong with database, tables, grants and destinations, and what mends it",
      access: "viewer",
      answers: {
        200: { description: "Nothing when all is well; looked at again after ten seconds", schema: findingsSchema },
      },
      handle: async () => ok(redacted({ findings: await faces.findings() }, redact)),
    }),
    route({
      method: "GET",
      path: "/api/v1/config",
      id: "config",
      summary: "Every setting in force, and where it comes from; secrets are hidden",
      access: "admin",
      answers: { 200: { description: "As of the last reload", schema: configSchema } },
      handle: async () => ok(redacted({ settings: faces.settings().map(shownSetting) }, redact)),
    }),
  ];
}

function shownSetting({ key, name, origin, value }: EffectiveSetting) {
  const { description } = settingOf(name);
  return { name, key, value: valueText(name, value), origin: originText(origin), description };
}

/** What servers said is quoted in findings, and what people wrote in settings: nobody knows what that was. */
function redacted(body: object, redact: (text: string) => string): unknown {
  return JSON.parse(redact(JSON.stringify(body)));
}
