import { matchesPattern } from "./type-pattern.ts";

/** A pipeline's view of one event type table: which events it takes, first match wins. Null takes everything. */
export type TypeFilter = readonly TypeRule[] | null;

export interface TypeRule {
  /** An exact type, or a pattern in which `*` stands for any run of characters. */
  readonly pattern: string;
  /** What else must hold of the event. Absent: nothing. */
  readonly when?: readonly FieldRule[];
  /** Whether the events that this rule is the first to match belong to this pipeline. */
  readonly mine: boolean;
}

/** True when the field is there and one of the patterns matches it. */
export interface FieldRule {
  readonly field: "key" | "correlation_id" | `header:${string}`;
  /** As in a type rule. `*` alone matches whatever is there. */
  readonly patterns: readonly string[];
}

/** What of an event the rules ask for. Null headers: it has none that can be read. */
interface Ruled {
  readonly type: string;
  readonly key: string | null;
  readonly correlationId: string | null;
  readonly headers: Readonly<Record<string, string>> | null;
}

/** Types whose answer is remembered: few make up nearly all of a source. */
const REMEMBERED_MAX = 1_000;

/** Whether the first rule that matches says so, for sources that cannot let a database decide. */
export function typeMatcher(filter: TypeFilter): (event: Ruled) => boolean {
  if (filter === null) return () => true;
  const remembered = new Map<string, readonly TypeRule[]>();
  const rulesFor = (type: string) => {
    const before = remembered.get(type);
    if (before !== undefined) return before;
    if (remembered.size >= REMEMBERED_MAX) remembered.clear();
    const matching = filter.filter(({ pattern }) => matchesPattern(pattern, type));
    remembered.set(type, matching);
    return matching;
  };
  return (event) => rulesFor(event.type).find(({ when = [] }) => fieldsHold(when, event))?.mine ?? false;
}

export function fieldsHold(rules: readonly FieldRule[], event: Omit<Ruled, "type">): boolean {
  return rules.every(({ field, patterns }) => {
    const value = fieldOf(event, field);
    return value !== null && patterns.some((pattern) => matchesPattern(pattern, value));
  });
}

function fieldOf({ correlationId, headers, key }: Omit<Ruled, "type">, field: FieldRule["field"]): string | null {
  if (field === "key") return key;
  if (field === "correlation_id") return correlationId;
  const name = field.slice("header:".length);
  return headers !== null && Object.hasOwn(headers, name) ? (headers[name] ?? null) : null;
}
