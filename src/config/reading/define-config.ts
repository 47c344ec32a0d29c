import type { z } from "zod";
import type { Setting } from "../settings/setting.ts";
import type { SETTINGS } from "../settings/settings.ts";
import type { WrittenDestinations, WrittenRoute, WrittenSubscriber } from "./written-routes.ts";

/** What a config program can write for a setting: the value's own type, or the text of the environment variable. */
type Writable<Value> =
  | (Value extends boolean
      ? boolean
      : Value extends number
        ? number | string
        : Value extends readonly string[]
          ? readonly string[] | string
          : Value extends string
            ? Value
            : Value extends WrittenDestinations | readonly WrittenRoute[] | readonly WrittenSubscriber[]
              ? Value
              : Readonly<Record<string, string>>)
  | undefined;

/** `database.url` with a value becomes `{ database?: { url?: value } }`. */
type Nested<Path extends string, Value> = Path extends `${infer Group}.${infer Rest}`
  ? { readonly [Key in Group]?: Nested<Rest, Value> }
  : { readonly [Key in Path]?: Value };

type InFile<Entry> =
  Entry extends Setting<infer Path, infer Type, infer Secret>
    ? Nested<Path, Writable<Exclude<z.output<Type>, undefined>>> &
        (Secret extends null ? unknown : Nested<`${Path}File`, string | undefined>)
    : never;

type Intersected<Union> = (Union extends unknown ? (one: Union) => void : never) extends (all: infer All) => void
  ? All
  : never;

/** The settings as groups of a config file. Secrets can also come from files: `passwordFile`. */
export type RelayConfig = Intersected<InFile<(typeof SETTINGS)[keyof typeof SETTINGS]>>;

/** For `outbox-relay.config.ts`: gives the editor names and types of the settings. */
export function defineConfig(config: RelayConfig): RelayConfig {
  return config;
}
