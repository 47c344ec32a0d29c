import { type EffectiveSetting, originText, valueText } from "../../config/reading/effective-settings.ts";
import { settingOf } from "../../config/settings/settings.ts";
import type { Finding } from "../../operations/doctor/finding.ts";
import type { ListedLog } from "../../operations/logs/log-list.ts";
import { ok, type Route, route } from "../route.ts";
import { configSchema, findingsSchema, logsSchema } from "../schemas/service.ts";

/** What the service reports of its logs, findings and settings. */
export interface ServiceFaces {
  /** Readers of logs; empty where no source is a log. */
  logs(): Promise<readonly ListedLog[]>;
  /** Findings of the doctor. Never slow; an unreachable database is a finding too. */
  findings(): Promise<readonly Finding[]>;
  /** The settings in force. */
  settings(): readonly EffectiveSetting[];
}

export function serviceRoutes(faces: ServiceFaces, redact: (text: string) => string): Route[] {
  return [
    route({
      method: "GET",
      path: "/api/v1/logs",
      id: "listLogs",
      summary: "Readers of logs with their positions",
      access: "viewer",
      answers: { 200: { description: "All readers of logs", schema: logsSchema } },
      handle: async () => ok({ logs: await faces.logs() }),
    }),
    route({
      method: "GET",
      path: "/api/v1/doctor",
      id: "doctor",
      summary: "Findings of the doctor on database, tables, grants and destinations, with their fixes",
      access: "viewer",
      answers: {
        200: { description: "Empty when all checks pass; cached for ten seconds", schema: findingsSchema },
      },
      handle: async () => ok(redacted({ findings: await faces.findings() }, redact)),
    }),
    route({
      method: "GET",
      path: "/api/v1/config",
      id: "config",
      summary: "Settings in force with their origin; secrets are hidden",
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

/** Findings quote servers and settings quote their author: both may contain secrets. */
function redacted(body: object, redact: (text: string) => string): unknown {
  return JSON.parse(redact(JSON.stringify(body)));
}
