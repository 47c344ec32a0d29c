import { z } from "zod";
import { shownAddress } from "./address-secrets.ts";
import { FILE_PATHS } from "./names.ts";
import { presetDefaults } from "./presets.ts";
import type { ReadSettings } from "./read-settings.ts";
import { SETTING_NAMES, type SettingName, settingOf } from "./settings.ts";
import { durationText, valueTypeOf } from "./value-types.ts";
import type { Origin } from "./written.ts";

/** A setting as it is in force, fit to be shown. */
export interface EffectiveSetting {
  readonly name: SettingName;
  /** Its key in the config file. */
  readonly key: string;
  /** Without secrets. Where the table decides, the values by the kind of the table. */
  readonly value: unknown;
  readonly origin: Origin | { readonly kind: "default" | "preset" | "unset" };
}

const HIDDEN = "***";

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

/** Names of the settings that differ, for people. */
export function changedSettings(before: ReadSettings, after: ReadSettings): SettingName[] {
  return SETTING_NAMES.filter((name) => JSON.stringify(before.settings[name]) !== JSON.stringify(after.settings[name]));
}

function shown(name: SettingName, value: unknown): unknown {
  const { secret } = settingOf(name);
  if (secret === true) return HIDDEN;
  if (secret === "parts" && value !== undefined) return shownParts("destination", value);
  return secret === "address" && typeof value === "string" ? shownAddress(value) : value;
}

/** Each part by the setting that it would be alone. */
function shownParts(path: string, value: unknown, depth = 0): unknown {
  const known = FILE_PATHS.get(path);
  // A group of its own, such as headers, is as secret as the setting that holds it.
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

/** A value as one would write it. */
export function valueText(name: SettingName, value: unknown): string {
  if (value === null || value === undefined) return "";
  if (presetDefaults(name) !== null && typeof value === "object") return byTableText(name, value as object);
  if (Array.isArray(value) && value.every((part) => typeof part !== "object")) return value.join(",");
  if (typeof value === "object") return JSON.stringify(value);
  const isDuration = typeof value === "number" && valueTypeOf(settingOf(name).type).form === "duration";
  return isDuration ? durationText(value) : String(value);
}

/** `500ms, worker 5s`: what most tables have first. */
function byTableText(name: SettingName, byTable: object): string {
  const { flag, ...others } = byTable as Readonly<Record<string, unknown>>;
  const different = Object.entries(others).filter(([, value]) => value !== flag);
  return [valueText(name, flag), ...different.map(([table, value]) => `${table} ${valueText(name, value)}`)].join(", ");
}

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

/** The default that stands in the schema; undefined where there is none. */
export function defaultOf(name: SettingName): unknown {
  const { type } = settingOf(name);
  return type instanceof z.ZodDefault ? type.def.defaultValue : undefined;
}
