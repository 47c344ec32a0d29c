import type { FieldRule, TypeRule } from "../ports/queue-store.ts";
import type { EventTable } from "./event-table.ts";
import { quoteLiteral } from "./identifiers.ts";

type RuledTable = Pick<EventTable, "eventType" | "key" | "correlationId" | "headersJson">;

/** `mine`: the first rule that matches says so. `unmatched`: no rule of the list matches. */
export function typeCondition(table: RuledTable, rules: readonly TypeRule[], which: "mine" | "unmatched"): string {
  if (rules.length === 0) return which === "mine" ? "false" : "true";
  const arms = rules.map((rule) => `when ${ruleMatches(table, rule)} then ${rule.mine}`).join(" ");
  return which === "mine" ? `(case ${arms} else false end)` : `(case ${arms} end) is null`;
}

/** An arm of a CASE counts unknown as no: a field that is not there matches nothing. */
function ruleMatches(table: RuledTable, { pattern, when = [] }: TypeRule): string {
  const conditions = [matches(table.eventType, pattern), ...when.map((rule) => fieldMatches(table, rule))];
  return conditions.filter((condition) => condition !== "true").join(" and ") || "true";
}

function fieldMatches(table: RuledTable, { field, patterns }: FieldRule): string {
  const value = fieldText(table, field);
  const any = patterns.map((pattern) => (pattern === "*" ? `${value} is not null` : matches(value, pattern)));
  return `(${any.join(" or ")})`;
}

/** Headers that are no object have no members. */
function fieldText(table: RuledTable, field: FieldRule["field"]): string {
  if (field === "key") return `(${table.key})`;
  if (field === "correlation_id") return `(${table.correlationId})`;
  return `((${table.headersJson}) ->> ${quoteLiteral(field.slice("header:".length))})`;
}

/** Compared byte by byte: collations of the user's may call different texts equal, or not know LIKE. */
function matches(value: string, pattern: string): string {
  if (pattern === "*") return "true";
  if (!pattern.includes("*")) return `${value} collate "C" = ${quoteLiteral(pattern)}`;
  const like = pattern.replace(/[\\%_]/g, "\\$&").replaceAll("*", "%");
  return `${value} collate "C" like ${quoteLiteral(like)}`;
}
