import { nearestName } from "../../routing/nearest-name.ts";
import { ENVIRONMENT_NAMES, FILE_PATHS } from "../settings/names.ts";
import { type ReadText, textOfFile } from "./environment.ts";
import { type Level, LevelBuilder } from "./written.ts";

/** Reads `--set name=value` options. The name is an environment name or a key of the config file. */
export function flagLevel(flags: readonly string[], readText: ReadText, problems: string[]): Level {
  const builder = new LevelBuilder();
  for (const flag of flags) {
    const at = flag.indexOf("=");
    const name = at < 0 ? flag : flag.slice(0, at);
    const known = ENVIRONMENT_NAMES.get(name) ?? FILE_PATHS.get(name);
    if (known === undefined) problems.push(unknownFlag(name));
    else if (at < 0) problems.push(`--set ${name} has no value: write --set ${name}=value`);
    if (known === undefined || at < 0) continue;
    const { setting, isFile, convert } = known;
    const value = flag.slice(at + 1);
    const text = isFile ? textOfFile(`--set ${name}`, value, readText, problems) : value;
    if (text !== null) builder.add(setting, { origin: { kind: "flag", name }, value: convert(text) });
  }
  return builder.level;
}

function unknownFlag(name: string): string {
  const nearest = nearestName(name, [...ENVIRONMENT_NAMES.keys(), ...FILE_PATHS.keys()]);
  const hint = nearest === undefined ? "`outbox-relay config print` lists all settings" : `did you mean ${nearest}?`;
  return `--set ${name} is not a setting: ${hint}`;
}
