import type { FieldRule, TypeFilter } from "../../../ports/queue-store.ts";

interface Ruled {
  readonly type: string;
  readonly key: string | null;
  readonly correlationId: string | null;
  readonly headers: Readonly<Record<string, string>>;
}

/** Types whose answer is remembered: few make up nearly all of a log. */
const REMEMBERED_MAX = 1_000;

/** Whether the first rule that matches says so. */
export function typeMatcher(filter: TypeFilter): (event: Ruled) => boolean {
  if (filter === null) return () => true;
  const rules = filter.map(({ mine, pattern, when = [] }) => {
    const fields = when.map(({ field, patterns }) => ({ field, patterns: patterns.map(patternOf) }));
    return { mine, pattern: patternOf(pattern), fields };
  });
  const remembered = new Map<string, readonly (typeof rules)[number][]>();
  const rulesFor = (type: string) => {
    const before = remembered.get(type);
    if (before !== undefined) return before;
    if (remembered.size >= REMEMBERED_MAX) remembered.clear();
    const matching = rules.filter(({ pattern }) => pattern.test(type));
    remembered.set(type, matching);
    return matching;
  };
  return (event) => {
    for (const { fields, mine } of rulesFor(event.type)) {
      const matches = fields.every(({ field, patterns }) => {
        const value = fieldOf(event, field);
        return value !== null && patterns.some((pattern) => pattern.test(value));
      });
      if (matches) return mine;
    }
    return false;
  };
}

function fieldOf({ correlationId, headers, key }: Ruled, field: FieldRule["field"]): string | null {
  if (field === "key") return key;
  if (field === "correlation_id") return correlationId;
  const name = field.slice("header:".length);
  return Object.hasOwn(headers, name) ? (headers[name] ?? null) : null;
}

function patternOf(pattern: string): RegExp {
  const literals = pattern.split("*").map((part) => part.replace(/[\\^$.|?+()[\]{}]/g, "\\$&"));
  return new RegExp(`^${literals.join(".*")}$`, "s");
}
