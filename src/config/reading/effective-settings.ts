import { z } from "zod";
import { FILE_PATHS } from "../settings/names.ts";
import { SETTING_NAMES, type SettingName, settingOf } from "../settings/settings.ts";
import { durationText, valueTypeOf } from "../settings/value-types.ts";
import { presetDefaults } from "../sources/presets.ts";
import { shownAddress } from "./address-secrets.ts";
import type { ReadSettings } from "./read-settings.ts";
import type { Origin } from "./written.ts";

/** A setting in force, safe to show. */
export interface EffectiveSetting {
  readonly name: SettingName;
  /** Its key in the config file. */
  readonly key: string;
  /** Without secrets. Where the default depends on the table, the values by kind of table. */
  readonly value: unknown;
  readonly origin: Origin | { readonly kind: "default" | "preset" | "unset" };
}

const HIDDEN = "***";

/** All settings in force, with their origins. */
export function effectiveSettings({ settings, origins }: ReadSettings): EffectiveSetting[] {
  return SETTING_NAMES.map((name) => {
    const key = settingOf(name).path;
    const origin = origins.get(name);
    if (origin !== undefined) return { name, key, value: shown(name, settings[name]), origin };
    const byTable = presetDefaults(name);
    if (byTable !== null) return { name, key, value: byTable, origin: { kind: "preset" } };
    const value = settings[name];
    return { name, key, value: value ?? null, origin: { kind: value === undefined ? "unset" : "default" } };
  });
}

/** The names of the settings whose values differ. */
export function changedSettings(before: ReadSettings, after: ReadSettings): SettingName[] {
  return SETTING_NAMES.filter((name) => JSON.stringify(before.settings[name]) !== JSON.stringify(after.settings[name]));
}

function shown(name: SettingName, value: unknown): unknown {
  const { secret } = settingOf(name);
  if (secret === true) return HIDDEN;
  if (secret === "parts" && value !== undefined) return shownParts("destination", value);
  return secret === "address" && typeof value === "string" ? shownAddress(value) : value;
}

/** Redacts each part like the setting that it corresponds to. */
function shownParts(path: string, value: unknown, depth = 0): unknown {
  const known = FILE_PATHS.get(path);
  // A group such as headers is as secret as the setting that holds it.
  if (known !== undefined && !known.isFile) return shown(known.setting, value);
  if (typeof value === "object" && value !== null && !Array.isArray(value)) {
    return Object.fromEntries(
      Object.entries(value).map(([key, part]) => [
        key,
        shownParts(depth === 0 ? path : `${path}.${key}`, part, depth + 1),
      ]),
    );
  }
  return value;
}

/** A value as a user would write it. */
export function valueText(name: SettingName, value: unknown): string {
  if (value === null || value === undefined) return "";
  if (presetDefaults(name) !== null && typeof value === "object") return byTableText(name, value as object);
  if (Array.isArray(value) && value.every((part) => typeof part !== "object")) return value.join(",");
  if (typeof value === "object") return JSON.stringify(value);
  const isDuration = typeof value === "number" && valueTypeOf(settingOf(name).type).form === "duration";
  return isDuration ? durationText(value) : String(value);
}

/** `500ms, worker 5s`: the common value first, then the exceptions. */
function byTableText(name: SettingName, byTable: object): string {
  const { flag, ...others } = byTable as Readonly<Record<string, unknown>>;
  const different = Object.entries(others).filter(([, value]) => value !== flag);
  return [valueText(name, flag), ...different.map(([table, value]) => `${table} ${valueText(name, value)}`)].join(", ");
}

/** Where a value comes from, as text. */
export function originText(origin: EffectiveSetting["origin"]): string {
  switch (origin.kind) {
    case "flag":
      return `flag --set ${origin.name}`;
    case "environment":
      return `environment ${origin.name}`;
    case "file":
      return `file ${origin.file}${origin.line === null ? "" : `:${origin.line}`} ${origin.name}`;
    case "preset":
      return "preset of the table";
    case "unset":
      return "not set";
    default:
      return "default";
  }
}

/** The default in the setting's type; undefined if there is none. */
export function defaultOf(name: SettingName): unknown {
  const { type } = settingOf(name);
  return type instanceof z.ZodDefault ? type.def.defaultValue : undefined;
}
