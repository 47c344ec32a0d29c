import { SETTING_NAMES, settingOf } from "./settings.ts";

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
