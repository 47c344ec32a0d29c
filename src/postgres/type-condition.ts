import type { FieldRule, TypeRule } from "../ports/queue-store.ts";
import type { EventTable } from "./event-table.ts";
import { quoteLiteral } from "./identifiers.ts";

type RuledTable = Pick<EventTable, "eventType" | "typeColumn" | "key" | "correlationId" | "headersJson">;

/** `mine`: the first rule that matches says so. `unmatched`: no rule of the list matches. */
export function typeCondition(table: RuledTable, rules: readonly TypeRule[], which: "mine" | "unmatched"): string {
  if (rules.length === 0) return which === "mine" ? "false" : "true";
  const arms = rules.map((rule) => `when ${ruleMatches(table, rule)} then ${rule.mine}`).join(" ");
  if (which === "unmatched") return `(case ${arms} end) is null`;
  const plain = plainCondition(table, rules);
  return plain === null ? `(case ${arms} else false end)` : `(case ${arms} else false end) and ${plain}`;
}

/**
 * What holds of every event that is mine, in words that can stand in the condition of a partial index: with such an
 * index a look does not step over the waiting events of other pipelines. Null where there are no such words.
 */
export function plainCondition({ typeColumn }: RuledTable, rules: readonly TypeRule[]): string | null {
  const isPlain = ({ pattern, when = [] }: TypeRule) => !pattern.includes("*") && when.length === 0;
  const list = (some: readonly TypeRule[]) => some.map(({ pattern }) => quoteLiteral(pattern)).join(", ");
  if (typeColumn === null || rules.some(({ pattern }) => pattern === "")) return null;
  const mine = rules.filter((rule) => rule.mine);
  if (mine.length > 0 && mine.every(isPlain)) return `${typeColumn} collate "C" in (${list(mine)})`;
  const before = rules
    .slice(
      0,
      Math.max(
        0,
        rules.findIndex((rule) => rule.mine),
      ),
    )
    .filter(isPlain);
  return before.length === 0 ? null : `(${typeColumn} is null or ${typeColumn} collate "C" not in (${list(before)}))`;
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
