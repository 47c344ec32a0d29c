import { SETTING_NAMES, type SettingName, settingOf } from "./settings.ts";

/** One of the names by which a setting can be written outside of the config file. */
interface KnownName {
  readonly setting: SettingName;
  /** True where the value is the name of a file that holds the real one. */
  readonly isFile: boolean;
  readonly convert: (written: string) => string;
}

const asWritten = (written: string) => written;

/** All names of the environment that mean something, those of files included. */
export const ENVIRONMENT_NAMES: ReadonlyMap<string, KnownName> = new Map(
  SETTING_NAMES.flatMap((setting) => {
    const { aliases, secret } = settingOf(setting);
    return [{ name: setting, convert: asWritten }, ...aliases].flatMap(({ name, convert }): [string, KnownName][] => {
      const plain: [string, KnownName] = [name, { setting, isFile: false, convert }];
      return secret === null ? [plain] : [plain, [`${name}_FILE`, { setting, isFile: true, convert }]];
    });
  }),
);

/** All keys of the config file that hold a value, with dots between their parts. */
export const FILE_PATHS: ReadonlyMap<string, KnownName> = new Map(
  SETTING_NAMES.flatMap((setting): [string, KnownName][] => {
    const { path, secret } = settingOf(setting);
    const plain: [string, KnownName] = [path, { setting, isFile: false, convert: asWritten }];
    return secret === null ? [plain] : [plain, [`${path}File`, { setting, isFile: true, convert: asWritten }]];
  }),
);
