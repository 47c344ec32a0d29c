import type { FieldRule, TypeFilter, TypeRule } from "../ports/queue-store.ts";
import type { EventTable } from "./event-table.ts";
import { quoteArray, quoteLiteral } from "./identifiers.ts";

type RuledTable = Pick<EventTable, "eventType" | "typeColumn" | "key" | "correlationId" | "headersJson">;

/** `mine`: the first matching rule is ours. `unmatched`: no rule of the list matches. */
export function typeCondition(table: RuledTable, rules: readonly TypeRule[], which: "mine" | "unmatched"): string {
  if (rules.length === 0) return which === "mine" ? "false" : "true";
  const arms = rules.map((rule) => `when ${ruleMatches(table, rule)} then ${rule.mine}`).join(" ");
  if (which === "unmatched") return `(case ${arms} end) is null`;
  const plain = plainCondition(table, rules);
  return plain === null ? `(case ${arms} else false end)` : `(case ${arms} else false end) and ${plain}`;
}

/**
 * A weaker condition that is true for every event of ours, in a form that the condition of a partial index can have.
 * With such an index, a read does not scan the pending events of other pipelines. Null where there is no such form.
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

/** Which events a pipeline reads. */
export interface Taker {
  readonly pipeline: string;
  readonly takes: TypeFilter;
}

/**
 * The number, from 1, of the first taker whose filter matches the row; 0 for none. Pipelines with equal rule lists, as
 * those of one service, share the comparisons.
 */
export function takerSql(table: RuledTable, takers: readonly Taker[]): string {
  const numbered = takers.map(({ takes }, at) => ({ place: at + 1, rules: takes ?? TAKES_ALL }));
  const asked = (rules: readonly TypeRule[]) => JSON.stringify(rules.map(({ pattern, when = [] }) => [pattern, when]));
  const lists = [...Map.groupBy(numbered, ({ rules }) => asked(rules)).values()].filter(
    ([first]) => first!.rules.length > 0,
  );
  const cases = lists.map((sharers) => {
    const arms = sharers[0]!.rules.map((rule, at) => {
      const owner = sharers.find(({ rules }) => rules[at]!.mine);
      return `when ${ruleMatches(table, rule)} then ${owner?.place ?? "null"}`;
    });
    return `case ${arms.join(" ")} end`;
  });
  return `coalesce(${[...cases, "0"].join(", ")})`;
}

/** The name of the pipeline that reads the row; null for none. */
export function readerSql(table: RuledTable, takers: readonly Taker[]): string {
  return `(${quoteArray(takers.map(({ pipeline }) => pipeline))}::text[])[${takerSql(table, takers)}]`;
}

const TAKES_ALL: readonly TypeRule[] = [{ pattern: "*", mine: true }];

/** A CASE treats unknown as false: an absent field matches nothing. */
function ruleMatches(table: RuledTable, { pattern, when = [] }: TypeRule): string {
  const conditions = [matches(table.eventType, pattern), ...when.map((rule) => fieldMatches(table, rule))];
  return conditions.filter((condition) => condition !== "true").join(" and ") || "true";
}

function fieldMatches(table: RuledTable, { field, patterns }: FieldRule): string {
  const value = fieldText(table, field);
  const any = patterns.map((pattern) => (pattern === "*" ? `${value} is not null` : matches(value, pattern)));
  return `(${any.join(" or ")})`;
}

/** Headers that are not an object have no members. */
function fieldText(table: RuledTable, field: FieldRule["field"]): string {
  if (field === "key") return `(${table.key})`;
  if (field === "correlation_id") return `(${table.correlationId})`;
  return `((${table.headersJson}) ->> ${quoteLiteral(field.slice("header:".length))})`;
}

/** Compared byte by byte: a user's collation may treat different texts as equal, or not support LIKE. */
function matches(value: string, pattern: string): string {
  if (pattern === "*") return "true";
  if (!pattern.includes("*")) return `${value} collate "C" = ${quoteLiteral(pattern)}`;
  const like = pattern.replace(/[\\%_]/g, "\\$&").replaceAll("*", "%");
  return `${value} collate "C" like ${quoteLiteral(like)}`;
}
