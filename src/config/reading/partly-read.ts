import type { SettingName } from "../settings/settings.ts";
import { parsedYaml } from "../settings/value-types.ts";
import { ConfigProblems } from "./config-problems.ts";
import type { ReadSettings } from "./read-settings.ts";

/** An invalid value. */
export interface Fault {
  readonly name: SettingName;
  /** The path below the setting: an item, a member. */
  readonly inside: readonly PropertyKey[];
  readonly message: string;
}

interface ReadablePart {
  readonly read: ReadSettings;
  /** Invalid items of lists, such as `routes[1]`; destinations keep their names. */
  readonly faultyItems: readonly string[];
}

/** Some settings are invalid. The others can still be checked, so that the operator sees all problems at once. */
export class PartlyRead extends ConfigProblems {
  /** Null if not even the valid part can be used. */
  readonly part: ReadablePart | null;

  constructor(problems: readonly string[], part: ReadablePart | null) {
    super(problems);
    this.part = part;
  }
}

const LISTS: Partial<Record<SettingName, string>> = { OUTBOX_ROUTES: "routes", OUTBOX_SUBSCRIBERS: "subscribers" };

/**
 * The texts without the invalid values. Items keep their index: an item that matches nothing replaces an invalid one.
 */
export function readablePart(
  texts: Readonly<Record<string, string>>,
  faults: readonly Fault[],
): { readonly rest: Record<string, string>; readonly faultyItems: readonly string[] } {
  const rest = { ...texts };
  const faultyItems: string[] = [];
  for (const [name, ofName] of Map.groupBy(faults, (fault) => fault.name)) {
    const indexes = ofName.map(({ inside: [index] }) => index);
    const list = LISTS[name];
    if (name === "OUTBOX_DESTINATIONS" && ofName.every(({ inside }) => inside.length === 1)) {
      rest[name] = withoutMembers(texts[name] ?? "{}", indexes);
      continue;
    }
    if (list === undefined || !indexes.every((index) => typeof index === "number")) delete rest[name];
    else {
      const items = parsedYaml(texts[name] ?? "[]") as unknown[];
      const without = items.map((item, at) => (indexes.includes(at) ? matchesNothing(list, at) : item));
      rest[name] = JSON.stringify(without);
      faultyItems.push(...indexes.map((index) => `${list}[${index}]`));
    }
  }
  return { rest, faultyItems };
}

/** Routes may lead to these destinations: they keep their names, and are valid whatever was written. */
function withoutMembers(text: string, names: readonly (PropertyKey | undefined)[]): string {
  const members = Object.entries(parsedYaml(text) as Readonly<Record<string, unknown>>);
  return JSON.stringify(
    Object.fromEntries(members.map(([name, value]) => [name, names.includes(name) ? { url: "discard:" } : value])),
  );
}

function matchesNothing(list: string, at: number): object {
  const route = { types: [`unreadable ${at}`] };
  return list === "routes" ? route : { ...route, name: `unreadable-${at}` };
}
