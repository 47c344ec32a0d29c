import type { SettingName } from "../settings/settings.ts";

/** Where a value came from. */
export type Origin =
  | { readonly kind: "flag"; readonly name: string }
  | { readonly kind: "environment"; readonly name: string }
  | { readonly kind: "file"; readonly name: string; readonly file: string; readonly line: number | null };

/** A value as written, with its origin. */
export interface Written {
  readonly origin: Origin;
  readonly value: string;
}

/** All values of one level, such as the environment. A setting that is there twice must have the same value. */
export type Level = ReadonlyMap<SettingName, readonly Written[]>;

/** Collects the values of one level. */
export class LevelBuilder {
  readonly level = new Map<SettingName, Written[]>();

  add(name: SettingName, written: Written): void {
    const others = this.level.get(name);
    if (others === undefined) this.level.set(name, [written]);
    else others.push(written);
  }
}

/** The origin as errors name it. */
export function describeOrigin(origin: Origin): string {
  if (origin.kind === "environment") return origin.name;
  if (origin.kind === "flag") return `--set ${origin.name}`;
  return `${origin.name} in ${origin.file}${origin.line === null ? "" : `:${origin.line}`}`;
}
