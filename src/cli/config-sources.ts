import type { Command } from "commander";
import type { ConfigSources } from "../config/load-config.ts";

interface ConfigFlags {
  readonly config?: string;
  readonly set?: readonly string[];
}

let given: ConfigFlags = {};

/** Options that every command has: where its settings come from. Known before a command's action begins. */
export function addConfigOptions(program: Command): void {
  program
    .option("--config <file>", "read the settings from this file; outbox-relay.config.* in this folder by default")
    .option(
      "--set <name=value>",
      "a setting by its name or its key in the file; wins over both",
      (flag, flags: string[]) => [...flags, flag],
      [],
    )
    .hook("preAction", (_program, command) => {
      const { config, set = [] } = program.opts<ConfigFlags>();
      const { only } = command.opts<{ readonly only?: string }>();
      given = {
        ...(config === undefined ? {} : { config }),
        set: only === undefined ? set : [...set, `OUTBOX_ONLY=${only}`],
      };
    });
}

/** For `loadConfig` and `loadDatabaseConfig`: the flags of this command line, the environment, the folder. */
export function configSources(): ConfigSources {
  return { env: process.env, cwd: process.cwd(), file: given.config, flags: given.set ?? [] };
}
