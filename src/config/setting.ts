import type { z } from "zod";

/** Another name of a setting. */
interface Alias {
  readonly name: string;
  /** What the alias says, in the words of the setting itself. */
  readonly convert: (written: string) => string;
}

interface SettingMeta {
  readonly aliases?: readonly (string | Alias)[];
  /**
   * Never shown, or of an address its password, or of a group what its parts say; can also come from a file, named by the
   * variable with `_FILE` behind its name.
   */
  readonly secret?: Secrecy;
}

type Secrecy = true | "address" | "parts";

/** One setting: its place in the config file, its type with the default, and all that people are told of it. */
export interface Setting<Path extends string, Type extends z.ZodType, Secret = Secrecy | null> {
  readonly path: Path;
  readonly type: Type;
  readonly description: string;
  readonly aliases: readonly Alias[];
  readonly secret: Secret;
}

type SecretOf<Meta> = Meta extends { secret: Secrecy } ? Secrecy : null;

const asWritten = (written: string) => written;

/** Help, reference, JSON Schema, checks and types are all made from what stands here. */
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

/** An alias whose name says that a bare number is in seconds. */
export function inSeconds(name: string): Alias {
  return { name, convert: (written) => (/^\d+(?:\.\d+)?$/.test(written.trim()) ? `${written.trim()}s` : written) };
}

/** An alias that counts the retries after the first attempt, where the setting counts all attempts. */
export function retriesAfterFirst(name: string): Alias {
  return { name, convert: (written) => (/^\d{1,6}$/.test(written) ? String(Number(written) + 1) : written) };
}
