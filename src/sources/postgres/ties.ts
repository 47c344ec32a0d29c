import type { Row } from "../../postgres/session.ts";
import { COLUMN } from "./event-columns.ts";

/** The value that the rows are ordered by. */
export type OrderOf = (row: Row) => string | null | undefined;

/**
 * How many of the rows, read in order, can be returned: a group of equal order is never split, unless it alone exceeds
 * `rowsMax`. The rows after the last whole group wait for the rest of theirs.
 */
export function wholeGroups(rows: readonly Row[], rowsMax: number, isEnd: boolean, orderOf: OrderOf): number {
  if (isEnd && rows.length <= rowsMax) return rows.length;
  const limit = Math.min(rowsMax, rows.length - 1);
  for (let count = limit; count > 0; count--) {
    if (orderOf(rows[count]!) !== orderOf(rows[count - 1]!)) return count;
  }
  return Math.min(rowsMax, rows.length);
}

/**
 * Sorts each group of equal order by transaction, command and position in the table, which is all that the server knows
 * about the order of writing. The groups keep their places.
 */
export function sortTies(rows: Row[], orderOf: OrderOf): Row[] {
  for (let start = 0; start < rows.length; ) {
    let end = start + 1;
    const order = orderOf(rows[start]!);
    while (end < rows.length && orderOf(rows[end]!) === order) end += 1;
    if (end - start > 1) {
      const group = rows.slice(start, end).sort(byWriting);
      for (let index = 0; index < group.length; index++) rows[start + index] = group[index]!;
    }
    start = end;
  }
  return rows;
}

function byWriting(left: Row, right: Row): number {
  const leftXid = left[COLUMN.xmin];
  const rightXid = right[COLUMN.xmin];
  // Transaction ids wrap around: the sign of the 32-bit difference shows which one is older.
  if (leftXid !== rightXid) return (Number(leftXid) - Number(rightXid)) | 0;
  const byCommand = Number(left[COLUMN.cmin]) - Number(right[COLUMN.cmin]);
  return byCommand === 0 ? byPosition(left[COLUMN.ctid] ?? "", right[COLUMN.ctid] ?? "") : byCommand;
}

/** `(12,3)`: page 12, item 3. */
function byPosition(left: string, right: string): number {
  const [leftPage, leftItem] = left.slice(1, -1).split(",").map(Number);
  const [rightPage, rightItem] = right.slice(1, -1).split(",").map(Number);
  return leftPage! - rightPage! || leftItem! - rightItem!;
}
