import { type ConfigSources, checkedService, loadSettings } from "../config/load-config.ts";
import { ConfigProblems } from "../config/reading/config-problems.ts";
import { changedSettings } from "../config/reading/effective-settings.ts";
import type { ReadSettings } from "../config/reading/read-settings.ts";
import type { ServiceConfig } from "../config/service-config.ts";
import type { SettingName } from "../config/settings/settings.ts";

interface Reloaded {
  readonly config: ServiceConfig;
  /** The settings whose values changed. */
  readonly changed: readonly SettingName[];
  /** Changed settings that keep their old value, because only a restart can change them. */
  readonly kept: readonly SettingName[];
}

/** Settings of the process rather than of the service in it: its ports, its name and where its log goes. */
const PROCESS_SETTINGS: ReadonlySet<SettingName> = new Set([
  "HOST",
  "PORT",
  "METRICS_PORT",
  "SERVICE_NAME",
  "LOKI_HOST",
  "LOKI_BASIC_AUTH",
  "LOKI_ENABLED",
]);

/** The settings in force, which a reload replaces. */
export class CurrentSettings {
  readonly #sources: ConfigSources;
  #read: ReadSettings;
  #config: ServiceConfig;

  private constructor(sources: ConfigSources, read: ReadSettings, config: ServiceConfig) {
    this.#sources = sources;
    this.#read = read;
    this.#config = config;
  }

  static async load(sources: ConfigSources): Promise<CurrentSettings> {
    const read = await loadSettings(sources);
    return new CurrentSettings(sources, read, await checkedService(read));
  }

  /** What was read, with the origin of each value. */
  get read(): ReadSettings {
    return this.#read;
  }

  get config(): ServiceConfig {
    return this.#config;
  }

  /** Reads flags, environment and file again. Throws ConfigProblems and changes nothing if they are invalid. */
  async reload(): Promise<Reloaded> {
    const read = await loadSettings(this.#sources);
    const different = changedSettings(this.#read, read);
    const kept = different.filter((name) => PROCESS_SETTINGS.has(name));
    const old = Object.fromEntries(kept.map((name) => [name, this.#read.settings[name]]));
    const next = { ...read, settings: { ...read.settings, ...old } };
    const config = await checkedService(next);
    if (usesStdout(config) !== usesStdout(this.#config)) {
      throw new ConfigProblems([
        "the destination changes from or to standard output, which also decides where the log goes: restart the relay",
      ]);
    }
    this.#read = next;
    this.#config = config;
    return { config, changed: different.filter((name) => !PROCESS_SETTINGS.has(name)), kept };
  }
}

function usesStdout({ destinations }: ServiceConfig): boolean {
  return destinations.some((destination) => destination.usesStdout);
}
