import type { TypeFilter } from "../../ports/queue-store.ts";
import { quoteArray, quoteLiteral } from "../../postgres/identifiers.ts";
import type { RelayTables } from "../../postgres/relay-tables.ts";
import { typeCondition } from "../../postgres/type-condition.ts";
import { laneSql } from "./event-columns.ts";
import type { TableShape } from "./table-shape.ts";

export interface PendingScope {
  readonly shape: TableShape;
  readonly tables: RelayTables;
  readonly pipeline: string;
  readonly types: TypeFilter;
  /** Lanes of the pipeline. */
  readonly laneCount: number;
}

export interface PendingFilter {
  /** Those that the partial index covers, those that it does not, or both. */
  readonly rows: "main" | "strays" | "all";
  readonly lanes: readonly number[];
  /** Whether there may be held events, and held keys, to leave out. */
  readonly holds: { readonly ids: boolean; readonly keys: boolean };
  readonly exceptKeys?: readonly string[];
  /** Together with every event of a key that has one of these types pending. */
  readonly exceptTypes?: readonly string[];
}

/** The condition over `t` for the rows that a run shows. */
export function pendingCondition(scope: PendingScope, filter: PendingFilter): string {
  const { shape, laneCount } = scope;
  const lanes = [...new Set(filter.lanes)].filter((lane) => lane >= 0 && lane < laneCount);
  const conditions = [rowsCondition(shape, filter.rows)];
  if (shape.available !== "true") conditions.push(shape.available);
  if (lanes.length === 0) conditions.push("false");
  else if (lanes.length < laneCount) conditions.push(`${laneSql(shape, laneCount)} in (${lanes.join(", ")})`);
  if (scope.types !== null) conditions.push(typeCondition(shape, scope.types, "mine"));
  conditions.push(...holdConditions(scope, filter.holds), ...exceptKeysCondition(shape, filter.exceptKeys ?? []));
  conditions.push(...exceptTypesCondition(shape, filter));
  return conditions.join("\n  and ");
}

export function rowsCondition(shape: TableShape, rows: PendingFilter["rows"]): string {
  if (shape.strays === null || rows === "main") return shape.main;
  return rows === "strays" ? shape.strays : shape.unsettled;
}

/**
 * NOT IN over a subselect becomes a hashed subplan: it keeps the order of the index, while a join would lose it, and
 * costs the same for one hold as for thousands, while `<> all` compares each row with each of them. Null keys are let
 * through first, since NOT IN knows no answer for them.
 */
function holdConditions({ shape, tables, pipeline }: PendingScope, holds: PendingFilter["holds"]): string[] {
  const ofPipeline = `from ${tables.holds} h where h.pipeline = ${quoteLiteral(pipeline)}`;
  const conditions: string[] = [];
  if (holds.ids) conditions.push(`${shape.id}::text collate "C" not in (select h.event_id ${ofPipeline})`);
  if (holds.keys && hasKey(shape)) {
    const keys = `select h.event_key ${ofPipeline} and h.parks and h.event_key is not null`;
    conditions.push(`(${shape.key} is null or ${shape.key} collate "C" not in (${keys}))`);
  }
  return conditions;
}

function exceptKeysCondition(shape: TableShape, keys: readonly string[]): string[] {
  if (keys.length === 0 || !hasKey(shape)) return [];
  const list = `select unnest(${quoteArray(keys)}::text[])`;
  return [`(${shape.key} is null or ${shape.key} collate "C" not in (${list}))`];
}

function exceptTypesCondition(shape: TableShape, { exceptTypes = [], rows }: PendingFilter): string[] {
  if (exceptTypes.length === 0) return [];
  const isExcepted = `${shape.eventType} in (${exceptTypes.map(quoteLiteral).join(", ")})`;
  if (!hasKey(shape)) return [`not ${isExcepted}`];
  const keys = `select distinct ${shape.key} collate "C" from ${shape.quotedName} t
    where ${rowsCondition(shape, rows)} and ${isExcepted} and ${shape.key} is not null`;
  return [`not ${isExcepted}`, `(${shape.key} is null or ${shape.key} collate "C" not in (${keys}))`];
}

const hasKey = (shape: TableShape): boolean => shape.keyText !== "null";
