import { metaOf, SETTING_NAMES } from "./settings.ts";

/** All settings as a list for the command line. */
export function settingsHelp(): string {
  const width = Math.max(...SETTING_NAMES.map((name) => name.length)) + 2;
  const lines = SETTING_NAMES.map((name) => {
    const { aliases = [], description, secret } = metaOf(name);
    const also = aliases.length === 0 ? "" : ` (also ${aliases.join(", ")})`;
    const file = secret === undefined ? "" : ` (or ${name}_FILE)`;
    return `  ${name.padEnd(width)}${description}${also}${file}`;
  });
  return ["Settings by environment variables:", ...lines].join("\n");
}
