import type { SettingName } from "./settings.ts";

/** Where a value came from. */
export type Origin =
  | { readonly kind: "flag"; readonly name: string }
  | { readonly kind: "environment"; readonly name: string }
  | { readonly kind: "file"; readonly name: string; readonly file: string; readonly line: number | null };

/** A value as somebody wrote it, in one place. */
export interface Written {
  readonly origin: Origin;
  readonly value: string;
}

/** All that one place says. A setting that is there twice must say the same. */
export type Level = ReadonlyMap<SettingName, readonly Written[]>;

export class LevelBuilder {
  readonly level = new Map<SettingName, Written[]>();

  add(name: SettingName, written: Written): void {
    const others = this.level.get(name);
    if (others === undefined) this.level.set(name, [written]);
    else others.push(written);
  }
}

/** How an error names the place. */
export function placeOf(origin: Origin): string {
  if (origin.kind === "environment") return origin.name;
  if (origin.kind === "flag") return `--set ${origin.name}`;
  return `${origin.name} in ${origin.file}${origin.line === null ? "" : `:${origin.line}`}`;
}
