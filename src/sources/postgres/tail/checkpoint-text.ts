import { RelayError } from "../../../core/errors.ts";
import type { LogPlace } from "../log/log-kind.ts";
import { BEGINNING, type Difference, parseSnapshot } from "./difference.ts";
import { decodeMarks, encodeMarks } from "./marks.ts";

interface WrittenPlace {
  readonly place: LogPlace<Difference>;
  readonly ahead: ReadonlySet<number>;
}

/**
 * A place as JSON: `from` and `to` are the snapshots of the difference, `after` the position up to which it was read,
 * `ahead` the positions of rows behind it that are settled already, in whatever difference they were read.
 */
export function writePlace(
  { segment, mark }: LogPlace<Difference>,
  ahead: readonly { readonly mark: number }[],
): string {
  const { from, to } = segment;
  const marks = ahead.map((row) => row.mark);
  return JSON.stringify({ from, to, after: String(mark), ahead: encodeMarks(marks) });
}

/** Throws LOG_LOST where the text is no such place, or one of another way to read: along positions alone, or not. */
export function readPlace(text: string, table: string, way: "difference" | "horizon"): WrittenPlace {
  const found = parse(text);
  const mark = Number(found?.after);
  const ahead = decodeMarks(found?.ahead ?? "");
  if (found === null || !Number.isSafeInteger(mark) || mark < 0 || ahead === null) {
    throw new RelayError("LOG_LOST", `${JSON.stringify(text.slice(0, 200))} is no place in the log ${table}.`);
  }
  parseSnapshot(found.from);
  if (found.to !== null) parseSnapshot(found.to);
  const isAlongPositions = found.from === BEGINNING && found.to === null;
  if (isAlongPositions !== (way === "horizon")) {
    const what = `${JSON.stringify(text.slice(0, 200))} is no place in the log ${table} as it is read now`;
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
