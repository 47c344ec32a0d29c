import { SETTING_NAMES, settingOf } from "../settings/settings.ts";
import { type JsonSchema, valueTypeOf } from "../settings/value-types.ts";
import { defaultOf, valueText } from "./effective-settings.ts";

interface Group {
  readonly type: "object";
  readonly additionalProperties: false;
  readonly properties: Record<string, Group | JsonSchema>;
}

/** The JSON Schema of the config file, for editors. */
export function configSchema(): JsonSchema {
  const root = emptyGroup();
  for (const name of SETTING_NAMES) {
    const { path, type, description, secret } = settingOf(name);
    const keys = path.split(".");
    const leaf = keys.pop()!;
    const group = keys.reduce(groupIn, root);
    const fallback = defaultOf(name);
    group.properties[leaf] = {
      description: `${description} (${name})`,
      ...valueTypeOf(type).json,
      ...(fallback === undefined
        ? {}
        : { default: typeof fallback === "number" ? asDefault(name, fallback) : fallback }),
    };
    if (secret !== null) {
      group.properties[`${leaf}File`] = { description: `File that contains ${path}`, type: "string" };
    }
  }
  root.properties.$schema = { type: "string" };
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: "outbox-relay config file",
    ...root,
    $defs: { variable: { description: "An environment variable", type: "string", pattern: "\\$\\{[A-Za-z_]" } },
  };
}

function asDefault(name: (typeof SETTING_NAMES)[number], value: number): number | string {
  return valueTypeOf(settingOf(name).type).form === "duration" ? valueText(name, value) : value;
}

function groupIn(above: Group, key: string): Group {
  above.properties[key] ??= emptyGroup();
  return above.properties[key] as Group;
}

function emptyGroup(): Group {
  return { type: "object", additionalProperties: false, properties: {} };
}
