import type { TypeFilter } from "../../ports/queue-store.ts";
import { quoteArray, quoteLiteral } from "../../postgres/identifiers.ts";
import type { RelayTables } from "../../postgres/relay-tables.ts";
import { typeCondition } from "../../postgres/type-condition.ts";
import { laneSql } from "./event-columns.ts";
import type { TableShape } from "./table-shape.ts";

/** One pipeline's part of a table. */
export interface PendingScope {
  readonly shape: TableShape;
  readonly tables: RelayTables;
  readonly pipeline: string;
  readonly types: TypeFilter;
  /** Lanes of the pipeline. */
  readonly laneCount: number;
}

/** Which pending rows a statement covers. */
export interface PendingFilter {
  /** `main`: rows that the partial index covers; `conflicts`: the others; `all`: both. */
  readonly rows: "main" | "conflicts" | "all";
  readonly lanes: readonly number[] | "all";
  /** Whether there may be held events and held keys, which are left out. */
  readonly holds: { readonly ids: boolean; readonly keys: boolean };
  readonly exceptKeys?: readonly string[];
  /** Leaves out these types, and every event of a key that has one of them pending. */
  readonly exceptTypes?: readonly string[];
}

/** The condition over `t` for the rows that a run shows. */
export function pendingCondition(scope: PendingScope, filter: PendingFilter): string {
  const { shape, laneCount } = scope;
  const asked = filter.lanes === "all" ? Array.from({ length: laneCount }, (_, lane) => lane) : filter.lanes;
  const lanes = [...new Set(asked)].filter((lane) => lane >= 0 && lane < laneCount);
  const conditions = [rowsCondition(shape, filter.rows)];
  if (shape.available !== "true") conditions.push(shape.available);
  if (lanes.length === 0) conditions.push("false");
  else if (lanes.length < laneCount) conditions.push(`${laneSql(shape, laneCount)} in (${lanes.join(", ")})`);
  if (scope.types !== null) conditions.push(typeCondition(shape, scope.types, "mine"));
  conditions.push(...holdConditions(scope, filter.holds), ...exceptKeysCondition(shape, filter.exceptKeys ?? []));
  conditions.push(...exceptTypesCondition(shape, filter));
  return conditions.join("\n  and ");
}

/** The condition for pending rows, in the form that the index needs. */
export function rowsCondition(shape: TableShape, rows: PendingFilter["rows"]): string {
  if (shape.conflicts === null || rows === "main") return shape.main;
  return rows === "conflicts" ? shape.conflicts : shape.unsettled;
}

/**
 * NOT IN over a subselect becomes a hashed subplan: it keeps the order of the index, which a join would lose, and costs
 * the same for one hold as for thousands, while `<> all` compares each row with each hold. Null keys pass first,
 * because NOT IN is never true for them.
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
  const keysOf = (waiting: string) => `select distinct ${shape.key} collate "C" from ${shape.quotedName} t
    where ${waiting} and ${isExcepted} and ${shape.key} is not null`;
  // A claimed row that is about to be released still counts. One subselect for each condition, since each has its own
  // index.
  const claimed = shape.claims === undefined ? [] : [shape.claims.claimed];
  const keys = [rowsCondition(shape, rows), ...claimed].map(keysOf).join(" union ");
  return [`not ${isExcepted}`, `(${shape.key} is null or ${shape.key} collate "C" not in (${keys}))`];
}

const hasKey = (shape: TableShape): boolean => shape.keyText !== "null";
