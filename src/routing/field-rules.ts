import type { FieldRule } from "../ports/queue-store.ts";
import { nearestName } from "./nearest-name.ts";

const HEADER = "header:";
const FIELDS = ["key", "correlation_id"] as const;

/** The conditions of a route as rules. It leaves out faulty conditions and adds their faults to the list. */
export function fieldRules(
  when: Readonly<Record<string, string | readonly string[]>>,
  route: string,
  faults: string[],
): readonly FieldRule[] {
  return Object.entries(when).flatMap(([name, written]) => {
    const patterns = typeof written === "string" ? [written] : written;
    if (patterns.length === 0) faults.push(`${route}.when.${name} lists nothing. Write a text, or "*" for any value.`);
    const field = fieldOf(name, route, faults);
    return field === null ? [] : [{ field, patterns }];
  });
}

function fieldOf(field: string, route: string, faults: string[]): FieldRule["field"] | null {
  const known = FIELDS.find((name) => name === field);
  if (known !== undefined) return known;
  if (field.startsWith(HEADER) && field.length > HEADER.length) return field as `header:${string}`;
  const nearest = nearestName(field, FIELDS) ?? `${HEADER}${field}`;
  faults.push(
    `${route}.when has the unknown field "${field}". Write key, correlation_id or header:NAME (${nearest}?).`,
  );
  return null;
}
