import type { OutboxEvent } from "../../core/event.ts";
import type { FieldRule, TypeFilter } from "../../ports/queue-store.ts";

/** FNV-1a. A lane's hash must be stable across processes and restarts, and nothing more. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  }
  return hash >>> 0;
}

/** Events with one key share a lane. Events without a key have no order, so their ids spread them over all lanes. */
export function laneOf(event: { readonly id: string; readonly key: string | null }, lanes: number): number {
  return hashOf(event.key ?? event.id) % lanes;
}

type Ruled = Pick<OutboxEvent, "type" | "key" | "correlationId" | "headers">;

/** Applies the first matching rule; an event that matches none is not ours. */
export function typeMatcher(filter: TypeFilter): (event: Ruled) => boolean {
  if (filter === null) return () => true;
  const rules = filter.map(({ mine, pattern, when = [] }) => ({
    mine,
    pattern: patternOf(pattern),
    when: when.map(({ field, patterns }) => ({ field, patterns: patterns.map(patternOf) })),
  }));
  return (event) =>
    rules.find(
      ({ pattern, when }) =>
        pattern.test(event.type) &&
        when.every(({ field, patterns }) => {
          const value = fieldOf(event, field);
          return value !== null && patterns.some((it) => it.test(value));
        }),
    )?.mine ?? false;
}

function fieldOf({ correlationId, headers, key }: Ruled, field: FieldRule["field"]): string | null {
  if (field === "key") return key;
  if (field === "correlation_id") return correlationId;
  const name = field.slice("header:".length);
  return Object.hasOwn(headers, name) ? headers[name]! : null;
}

function patternOf(pattern: string): RegExp {
  const literals = pattern.split("*").map((part) => part.replace(/[\\^$.|?+()[\]{}]/g, "\\$&"));
  return new RegExp(`^${literals.join(".*")}$`, "s");
}
