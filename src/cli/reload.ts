import { ConfigProblems } from "../config/config-problems.ts";
import { changedSettings } from "../config/effective-settings.ts";
import { checkedService, loadSettings } from "../config/load-config.ts";
import type { ReadSettings } from "../config/read-settings.ts";
import type { ServiceConfig } from "../config/service-config.ts";
import type { SettingName } from "../config/settings.ts";
import { configSources } from "./config-sources.ts";

interface Reloaded {
  readonly config: ServiceConfig;
  /** Names of the settings that are different now. */
  readonly changed: readonly SettingName[];
  /** Those that differ and stay as they were, because only a restart can change them. */
  readonly kept: readonly SettingName[];
}

/** What belongs to the process and not to the service inside it: its ports, its name and where its log goes. */
const OF_THE_PROCESS: ReadonlySet<SettingName> = new Set([
  "HOST",
  "PORT",
  "METRICS_PORT",
  "SERVICE_NAME",
  "LOKI_HOST",
  "LOKI_BASIC_AUTH",
  "LOKI_ENABLED",
]);

/** The settings in force, and how others take their place. */
export class CurrentSettings {
  #read: ReadSettings;
  #config: ServiceConfig;

  private constructor(read: ReadSettings, config: ServiceConfig) {
    this.#read = read;
    this.#config = config;
  }

  static async load(): Promise<CurrentSettings> {
    const read = await loadSettings(configSources());
    return new CurrentSettings(read, await checkedService(read));
  }

  /** What was read, with the origin of each value. */
  get read(): ReadSettings {
    return this.#read;
  }

  get config(): ServiceConfig {
    return this.#config;
  }

  /** Reads flags, environment and file again. Throws ConfigProblems, and then nothing has changed. */
  async reload(): Promise<Reloaded> {
    const read = await loadSettings(configSources());
    const different = changedSettings(this.#read, read);
    const kept = different.filter((name) => OF_THE_PROCESS.has(name));
    const old = Object.fromEntries(kept.map((name) => [name, this.#read.settings[name]]));
    const next = { ...read, settings: { ...read.settings, ...old } };
    const config = await checkedService(next);
    if (usesStdout(config) !== usesStdout(this.#config)) {
      throw new ConfigProblems([
        "the destination changes from or to standard output, where the log is: restart for that",
      ]);
    }
    this.#read = next;
    this.#config = config;
    return { config, changed: different.filter((name) => !OF_THE_PROCESS.has(name)), kept };
  }
}

function usesStdout({ destinations }: ServiceConfig): boolean {
  return destinations.some((destination) => destination.usesStdout);
}
