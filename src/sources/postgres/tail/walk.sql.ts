import { SERVER_INCARNATION } from "../../../postgres/server-incarnation.ts";
import { columnsSql, filterConditions, fromSql, type TailScope } from "./tail-scope.ts";
import type { Stretch } from "./tail-stretch.ts";
import { type Large, walkedSql } from "./walked.ts";

/** The next rows of a large difference, along the positions. It scans at most `stepMax` rows of it. */
export function walkSql(scope: TailScope, stretch: Stretch, large: Large, rows: number, stepMax: number) {
  const conditions = filterConditions(scope, stretch.lanes);
  const where = conditions.length > 0 ? `where ${conditions.join("\n  and ")}\n` : "";
  return `select ${columnsSql(scope)}, ${SERVER_INCARNATION}
from ${fromSql(scope, `(${walkedSql(scope, stretch, large, stepMax)})`)}
${where}order by ${scope.shape.position} limit ${rows}`;
}
