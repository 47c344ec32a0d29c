import type { TailScope } from "./tail-scope.ts";
import type { Stretch } from "./tail-stretch.ts";
import { type Large, walkedSql } from "./walked.ts";

/** How far such a step of the walk went, whatever it returned, and over how many rows. */
export function walkEndSql(scope: TailScope, stretch: Stretch, large: Large, stepMax: number): string {
  const { position } = scope.shape;
  return `select max(${position}), count(*) from (${walkedSql(scope, stretch, large, stepMax)}) t`;
}
