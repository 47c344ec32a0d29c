import type { Command } from "commander";
import type { ConfigSources } from "../config/load-config.ts";

interface ConfigFlags {
  readonly config?: string;
  readonly set?: readonly string[];
}

let given: ConfigFlags = {};

/**
 * Adds the options that say where the settings come from. Every command has them, and a hook reads them before it runs.
 */
export function addConfigOptions(program: Command): void {
  program
    .option("--config <file>", "config file; default: outbox-relay.config.* in this folder")
    .option(
      "--set <name=value>",
      "a setting, by its environment name or its key in the file; overrides both",
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

/** The command line, environment and folder from which `loadConfig` and `loadDatabaseConfig` read the settings. */
export function configSources(): ConfigSources {
  return { env: process.env, cwd: process.cwd(), file: given.config, flags: given.set ?? [] };
}
