import { RelayError } from "../core/errors.ts";
import type { FieldRule } from "../ports/queue-store.ts";
import { nearestName } from "./nearest-name.ts";

const HEADER = "header:";
const FIELDS = ["key", "correlation_id"] as const;

/** The conditions of a route as rules. Throws CONFIG_INVALID, naming the route. */
export function fieldRules(
  when: Readonly<Record<string, string | readonly string[]>>,
  route: string,
): readonly FieldRule[] {
  return Object.entries(when).map(([field, written]) => {
    const patterns = typeof written === "string" ? [written] : written;
    if (patterns.length === 0) throw invalid(`${route}.when.${field} lists nothing: write a text, or "*" for any.`);
    return { field: fieldOf(field, route), patterns };
  });
}

function fieldOf(field: string, route: string): FieldRule["field"] {
  const known = FIELDS.find((name) => name === field);
  if (known !== undefined) return known;
  if (field.startsWith(HEADER) && field.length > HEADER.length) return field as `header:${string}`;
  const nearest = nearestName(field, FIELDS) ?? `${HEADER}${field}`;
  throw invalid(
    `${route}.when has the unknown field "${field}": write key, correlation_id or header:NAME (${nearest}?).`,
  );
}

function invalid(what: string): RelayError {
  return new RelayError("CONFIG_INVALID", what);
}
