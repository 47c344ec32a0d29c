import { SETTING_NAMES, type SettingName, settingOf } from "./settings.ts";

/** A name under which a setting can be written, outside or inside of the config file. */
interface KnownName {
  readonly setting: SettingName;
  /** True if the value is the path of a file that contains the actual value. */
  readonly isFile: boolean;
  readonly convert: (written: string) => string;
}

const asWritten = (written: string) => written;

/** All environment names of settings, `_FILE` names included. */
export const ENVIRONMENT_NAMES: ReadonlyMap<string, KnownName> = new Map(
  SETTING_NAMES.flatMap((setting) => {
    const { aliases, secret } = settingOf(setting);
    return [{ name: setting, convert: asWritten }, ...aliases].flatMap(({ name, convert }): [string, KnownName][] => {
      const plain: [string, KnownName] = [name, { setting, isFile: false, convert }];
      return secret === null ? [plain] : [plain, [`${name}_FILE`, { setting, isFile: true, convert }]];
    });
  }),
);

/** All keys of the config file that hold a value, as dotted paths. */
export const FILE_PATHS: ReadonlyMap<string, KnownName> = new Map(
  SETTING_NAMES.flatMap((setting): [string, KnownName][] => {
    const { path, secret } = settingOf(setting);
    const plain: [string, KnownName] = [path, { setting, isFile: false, convert: asWritten }];
    return secret === null ? [plain] : [plain, [`${path}File`, { setting, isFile: true, convert: asWritten }]];
  }),
);
