import type { TailScope } from "./tail-scope.ts";
import type { Stretch } from "./tail-stretch.ts";
import { walkedSql } from "./walked.ts";

/** How far such a step of the walk went, whatever it showed, and over how many rows. */
export function walkEndSql(scope: TailScope, stretch: Stretch, xids: readonly bigint[], stepMax: number): string {
  const { position } = scope.shape;
  return `select max(${position}), count(*) from (${walkedSql(scope, stretch, xids, stepMax)}) t`;
}
