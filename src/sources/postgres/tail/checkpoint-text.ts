import { RelayError } from "../../../core/errors.ts";
import type { LogPosition } from "../log/log-kind.ts";
import { BEGINNING, type Difference, parseSnapshot } from "./difference.ts";
import { decodeMarks, encodeMarks } from "./marks.ts";

interface WrittenPosition {
  readonly place: LogPosition<Difference>;
  readonly ahead: ReadonlySet<number>;
}

/**
 * A position as JSON: `from` and `to` are the snapshots of the difference, `after` is the position up to which it was
 * read, and `ahead` lists the positions of rows beyond it that are already settled, whatever difference they were read
 * in.
 */
export function writePosition(
  { segment, mark }: LogPosition<Difference>,
  ahead: readonly { readonly mark: number }[],
): string {
  const { from, to } = segment;
  const marks = ahead.map((row) => row.mark);
  return JSON.stringify({ from, to, after: String(mark), ahead: encodeMarks(marks) });
}

/**
 * Throws LOG_LOST when the text is not a position, or one of the other way of reading (with or without a transaction
 * column).
 */
export function readPosition(text: string, table: string, way: "difference" | "horizon"): WrittenPosition {
  const found = parse(text);
  const mark = Number(found?.after);
  const ahead = decodeMarks(found?.ahead ?? "");
  if (found === null || !Number.isSafeInteger(mark) || mark < 0 || ahead === null) {
    throw new RelayError("LOG_LOST", `${JSON.stringify(text.slice(0, 200))} is not a position in the log ${table}.`);
  }
  parseSnapshot(found.from);
  if (found.to !== null) parseSnapshot(found.to);
  const isAlongPositions = found.from === BEGINNING && found.to === null;
  if (isAlongPositions !== (way === "horizon")) {
    const what = `${JSON.stringify(text.slice(0, 200))} is not a position in the log ${table} as it is read now`;
    throw new RelayError("LOG_LOST", `${what}, with${way === "horizon" ? "out" : ""} a column for the transaction.`);
  }
  return { place: { segment: { from: found.from, to: found.to }, mark }, ahead };
}

interface Fields {
  readonly from: string;
  readonly to: string | null;
  readonly after: string;
  readonly ahead: string;
}

function parse(text: string): Fields | null {
  let value: Partial<Fields> | null;
  try {
    value = JSON.parse(text) as Partial<Fields> | null;
  } catch {
    return null;
  }
  if (typeof value?.from !== "string" || typeof value.after !== "string") return null;
  const { from, to = null, after, ahead = "" } = value;
  return (to === null || typeof to === "string") && typeof ahead === "string" ? { from, to, after, ahead } : null;
}
