import type { TailShape } from "./tail-shape.ts";

/** The highest position while nobody has an uncommitted row. The select sees what was committed before the lock. */
export function lockForHorizonSql({ events, position }: TailShape): string {
  return `lock table ${events.quotedName} in share mode; select max(${position}) from ${events.quotedName} t`;
}
