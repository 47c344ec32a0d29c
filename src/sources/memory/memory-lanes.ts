import type { TypeFilter } from "../../ports/queue-store.ts";

/** FNV-1a: stable over processes and restarts, which is all that a lane asks of it. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  }
  return hash >>> 0;
}

/** Events without a key have no order, so their id spreads them. */
export function laneOf(event: { readonly id: string; readonly key: string | null }, lanes: number): number {
  return hashOf(event.key ?? event.id) % lanes;
}

/** Whether the first rule that matches says so; the answer per type is remembered. */
export function typeMatcher(filter: TypeFilter): (type: string) => boolean {
  if (filter === null) return () => true;
  const rules = filter.map((rule) => ({ mine: rule.mine, pattern: patternOf(rule.pattern) }));
  const known = new Map<string, boolean>();
  return (type) => {
    let mine = known.get(type);
    if (mine === undefined) {
      mine = rules.find((rule) => rule.pattern.test(type))?.mine ?? false;
      known.set(type, mine);
    }
    return mine;
  };
}

function patternOf(pattern: string): RegExp {
  const literals = pattern.split("*").map((part) => part.replace(/[\\^$.|?+()[\]{}]/g, "\\$&"));
  return new RegExp(`^${literals.join(".*")}$`, "s");
}
