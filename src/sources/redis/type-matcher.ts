import type { FieldRule, TypeFilter } from "../../ports/queue-store.ts";
import type { EventHead } from "./event-head.ts";

type Ruled = Pick<EventHead, "correlationId" | "headers" | "key" | "type">;

/** Whether the first rule that matches says so. */
export function typeMatcher(filter: TypeFilter): (event: Ruled) => boolean {
  if (filter === null) return () => true;
  const rules = filter.map(({ mine, pattern, when = [] }) => {
    const fields = when.map(({ field, patterns }) => ({ field, patterns: patterns.map(patternOf) }));
    return { mine, pattern: patternOf(pattern), fields };
  });
  return (event) =>
    rules.find(({ fields, pattern }) => {
      if (!pattern.test(event.type)) return false;
      return fields.every(({ field, patterns }) => {
        const value = fieldOf(event, field);
        return value !== null && patterns.some((it) => it.test(value));
      });
    })?.mine ?? false;
}

function fieldOf({ correlationId, headers, key }: Ruled, field: FieldRule["field"]): string | null {
  if (field === "key") return key;
  if (field === "correlation_id") return correlationId;
  const name = field.slice("header:".length);
  return headers !== null && Object.hasOwn(headers, name) ? (headers[name] ?? null) : null;
}

function patternOf(pattern: string): RegExp {
  const literals = pattern.split("*").map((part) => part.replace(/[\\^$.|?+()[\]{}]/g, "\\$&"));
  return new RegExp(`^${literals.join(".*")}$`, "s");
}
