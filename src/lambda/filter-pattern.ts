import { RelayError } from "../core/errors.ts";
import type { StreamRecord } from "./lambda-events.ts";

/**
 * A filter pattern of an event source mapping: nested objects with lists of rules at the leaves. One rule of each list
 * must match.
 */
export interface FilterPattern {
  readonly [name: string]: FilterPattern | readonly FilterRule[] | readonly FilterPattern[];
}

/**
 * One rule. `numeric` matches JSON numbers only; DynamoDB's numbers are strings in a record, so it never matches them.
 */
export type FilterRule =
  | FilterScalar
  | { readonly prefix: string }
  | { readonly suffix: string }
  | { readonly "equals-ignore-case": string }
  | { readonly "anything-but": FilterScalar | readonly FilterScalar[] }
  | { readonly numeric: readonly (string | number)[] }
  | { readonly exists: boolean };

/** A value that a rule compares with. */
export type FilterScalar = string | number | boolean | null;

/** The limit of AWS. */
const PATTERN_LENGTH_MAX = 4_096;
/** In place of a name: one of these patterns must match. */
const ANY_OF = "$or";

/** The filter of an intent type's relay: new, undelivered intents of exactly this type. Throws CONFIG_INVALID. */
export function streamFilter(type: string): FilterPattern {
  if (typeof type !== "string" || type === "") throw invalid("a filter needs the name of an intent type");
  const pattern: FilterPattern = {
    eventName: ["INSERT"],
    dynamodb: {
      NewImage: {
        intent: { M: { type: { S: [type] } } },
        // The rule must be at the value itself: `delivered_at: [{ exists: false }]` matches every record.
        delivered_at: { S: [{ exists: false }] },
      },
    },
  };
  if (JSON.stringify(pattern).length > PATTERN_LENGTH_MAX) {
    throw invalid(
      `the intent type ${JSON.stringify(type.slice(0, 50))}... is too long: AWS allows ${PATTERN_LENGTH_MAX} characters in a filter`,
    );
  }
  return pattern;
}

/** Whether an event source mapping would pass this record to the function. Throws on an unknown rule. */
export function matchesFilter(pattern: FilterPattern, record: StreamRecord): boolean {
  return matches(pattern, record);
}

function matches(pattern: FilterPattern, value: unknown): boolean {
  // A list matches if any of its elements does.
  if (Array.isArray(value)) return value.some((element) => matches(pattern, element));
  return Object.entries(pattern).every(([name, wanted]) => {
    if (name === ANY_OF) return (wanted as readonly FilterPattern[]).some((one) => matches(one, value));
    const found = isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
    if (!Array.isArray(wanted)) return matches(wanted as FilterPattern, found);
    return (wanted as readonly FilterRule[]).some((rule) => holds(rule, leavesOf(found)));
  });
}

/** The values that rules check: leaves only, no objects. */
function leavesOf(value: unknown): readonly FilterScalar[] {
  if (Array.isArray(value)) return value.flatMap(leavesOf);
  return value === undefined || isObject(value) ? [] : [value as FilterScalar];
}

function holds(rule: FilterRule, leaves: readonly FilterScalar[]): boolean {
  if (!isObject(rule)) return leaves.includes(rule);
  const [[name, wanted] = ["", undefined], ...others] = Object.entries(rule);
  const rules = others.length === 0 ? RULES[name] : undefined;
  if (rules === undefined) throw invalid(`${JSON.stringify(rule)} is not a known filter rule`);
  return rules(wanted, leaves);
}

const RULES: Readonly<Record<string, (wanted: unknown, leaves: readonly FilterScalar[]) => boolean>> = {
  prefix: (wanted, leaves) => leaves.some((leaf) => typeof leaf === "string" && leaf.startsWith(String(wanted))),
  suffix: (wanted, leaves) => leaves.some((leaf) => typeof leaf === "string" && leaf.endsWith(String(wanted))),
  "equals-ignore-case": (wanted, leaves) =>
    leaves.some((leaf) => typeof leaf === "string" && leaf.toLowerCase() === String(wanted).toLowerCase()),
  "anything-but": (wanted, leaves) => leaves.some((leaf) => ![wanted].flat().includes(leaf)),
  numeric: (wanted, leaves) => leaves.some((leaf) => typeof leaf === "number" && inRange(leaf, wanted)),
  exists: (wanted, leaves) => leaves.length > 0 === wanted,
};

/** `[">", 0, "<=", 5]`: every pair must match. */
function inRange(leaf: number, wanted: unknown): boolean {
  const parts = [wanted].flat();
  for (let at = 0; at < parts.length; at += 2) {
    const [sign, bound] = [COMPARISONS[String(parts[at])], parts[at + 1]];
    if (sign === undefined || typeof bound !== "number")
      throw invalid(`${JSON.stringify(wanted)} is not a numeric range`);
    if (!sign(leaf, bound)) return false;
  }
  return true;
}

const COMPARISONS: Readonly<Record<string, (leaf: number, bound: number) => boolean>> = {
  "=": (leaf, bound) => leaf === bound,
  "<": (leaf, bound) => leaf < bound,
  "<=": (leaf, bound) => leaf <= bound,
  ">": (leaf, bound) => leaf > bound,
  ">=": (leaf, bound) => leaf >= bound,
};

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function invalid(what: string): RelayError {
  return new RelayError("CONFIG_INVALID", `Stream filter: ${what}.`);
}
