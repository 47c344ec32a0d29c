/**
 * True when the pattern matches the type; `*` matches any characters, also none. Linear: it uses no regular expression.
 */
export function matchesPattern(pattern: string, type: string): boolean {
  const parts = pattern.split("*");
  const first = parts[0]!;
  if (parts.length === 1) return type === first;
  const last = parts[parts.length - 1]!;
  const end = type.length - last.length;
  if (end < first.length || !type.startsWith(first) || !type.endsWith(last)) return false;
  let at = first.length;
  for (let index = 1; index < parts.length - 1; index++) {
    const part = parts[index]!;
    const found = type.indexOf(part, at);
    if (found < 0 || found + part.length > end) return false;
    at = found + part.length;
  }
  return true;
}

/**
 * True when `wide` matches every type that `narrow` matches. A `*` in `narrow` is treated as a character that only a
 * `*` of `wide` can match.
 */
export function covers(wide: string, narrow: string): boolean {
  return matchesPattern(wide, narrow.replaceAll("*", ANY_RUN));
}

/** Replaces the `*` of the narrower pattern. No type contains it. */
const ANY_RUN = "\u{F0000}";

/** Which events a pipeline takes: the first rule that matches decides. Null takes everything. */
export type TypeFilter = readonly TypeRule[] | null;

/** One rule of a filter. */
export interface TypeRule {
  /** An exact type, or a pattern in which `*` matches any characters. */
  readonly pattern: string;
  /** Further conditions that the event must meet. Absent: none. */
  readonly when?: readonly FieldRule[];
  /** True when events that this rule matches first belong to this pipeline. */
  readonly mine: boolean;
}

/** A condition: the event has the field, and one of the patterns matches its value. */
export interface FieldRule {
  readonly field: "key" | "correlation_id" | `header:${string}`;
  /** As in a type rule. `*` alone matches any value. */
  readonly patterns: readonly string[];
}

/** The parts of an event that rules ask for. Null headers: the event has none that can be read. */
interface Ruled {
  readonly type: string;
  readonly key: string | null;
  readonly correlationId: string | null;
  readonly headers: Readonly<Record<string, string>> | null;
}

/** Types whose rules are cached. Few types make up nearly all events of a source. */
const REMEMBERED_MAX = 1_000;

/** A function that tests whether the filter takes an event, for sources that cannot let the database decide. */
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

/** True when the event meets all conditions. */
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
