import type { z } from "zod";

/** An alternative name of a setting. */
interface Alias {
  readonly name: string;
  /** Converts the alias's value to the setting's own format. */
  readonly convert: (written: string) => string;
}

interface SettingMeta {
  readonly aliases?: readonly (string | Alias)[];
  /**
   * Never shown; of an address only its password, of a group what its parts say. A secret can also come from a file,
   * which the variable with the suffix `_FILE` names.
   */
  readonly secret?: Secrecy;
}

type Secrecy = true | "address" | "parts";

/** One setting: its path in the config file, its type with the default, and its description. */
export interface Setting<Path extends string, Type extends z.ZodType, Secret = Secrecy | null> {
  readonly path: Path;
  readonly type: Type;
  readonly description: string;
  readonly aliases: readonly Alias[];
  readonly secret: Secret;
}

type SecretOf<Meta> = Meta extends { secret: Secrecy } ? Secrecy : null;

const asWritten = (written: string) => written;

/** Declares a setting. Help, reference, JSON Schema, validation and types derive from it. */
export function setting<const Path extends string, Type extends z.ZodType, const Meta extends SettingMeta = object>(
  path: Path,
  type: Type,
  description: string,
  meta?: Meta,
): Setting<Path, Type, SecretOf<Meta>> {
  const { aliases = [], secret }: SettingMeta = meta ?? {};
  return {
    path,
    type,
    description,
    aliases: aliases.map((alias) => (typeof alias === "string" ? { name: alias, convert: asWritten } : alias)),
    secret: (secret ?? null) as SecretOf<Meta>,
  };
}

/** An alias whose bare numbers are seconds. */
export function inSeconds(name: string): Alias {
  return { name, convert: (written) => (/^\d+(?:\.\d+)?$/.test(written.trim()) ? `${written.trim()}s` : written) };
}

/** An alias that counts retries after the first attempt, while the setting counts all attempts. */
export function retriesAfterFirst(name: string): Alias {
  return { name, convert: (written) => (/^\d{1,6}$/.test(written) ? String(Number(written) + 1) : written) };
}
