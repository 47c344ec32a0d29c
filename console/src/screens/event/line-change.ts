import { jsonPieces } from "../../kit/json-text.ts";

interface LineChange {
  /** Number of the first line that differs, counted from 1. */
  readonly line: number;
  readonly before: readonly string[];
  readonly after: readonly string[];
}

/** The range of lines from the first to the last difference between two texts. Null if they are equal. */
export function lineChange(before: string, after: string): LineChange | null {
  if (before === after) return null;
  const old = before.split("\n");
  const now = after.split("\n");
  const most = Math.min(old.length, now.length);
  let start = 0;
  while (start < most && old[start] === now[start]) start += 1;
  let end = 0;
  while (end < most - start && old.at(-1 - end) === now.at(-1 - end)) end += 1;
  return { line: start + 1, before: old.slice(start, old.length - end), after: now.slice(start, now.length - end) };
}

interface DiffRow {
  readonly sign: "−" | "+" | " " | "…";
  readonly text: string;
}

/** Unchanged lines shown around a change. */
const CONTEXT = 2;
/** Above this many pairs of lines the diff would be too slow: the difference is shown as one block. */
const PAIRS_MAX = 250_000;
const ROWS_MAX = 200;

/** Removed and added lines with a little context. Empty if the texts are equal. */
export function diffRows(before: string, after: string): readonly DiffRow[] {
  const change = lineChange(before, after);
  if (change === null) return [];
  const old = before.split("\n");
  const start = change.line - 1;
  const end = start + change.before.length;
  const plain = (lines: readonly string[]) => lines.map((text): DiffRow => ({ sign: " ", text }));
  const rows = [
    ...plain(old.slice(Math.max(0, start - CONTEXT), start)),
    ...middleRows(change.before, change.after),
    ...plain(old.slice(end, end + CONTEXT)),
  ];
  return rows.length <= ROWS_MAX ? rows : [...rows.slice(0, ROWS_MAX), { sign: "…", text: "" }];
}

/** Diff by the longest common subsequence of lines. */
function middleRows(old: readonly string[], now: readonly string[]): readonly DiffRow[] {
  if (old.length * now.length > PAIRS_MAX) {
    return [...old.map((text): DiffRow => ({ sign: "−", text })), ...now.map((text): DiffRow => ({ sign: "+", text }))];
  }
  const longest = Array.from({ length: old.length + 1 }, () => new Uint32Array(now.length + 1));
  const at = (row: number, column: number) => longest[row]?.[column] ?? 0;
  for (let row = old.length - 1; row >= 0; row -= 1) {
    for (let column = now.length - 1; column >= 0; column -= 1) {
      const isSame = old[row] === now[column];
      longest[row]![column] = isSame ? at(row + 1, column + 1) + 1 : Math.max(at(row + 1, column), at(row, column + 1));
    }
  }
  const rows: DiffRow[] = [];
  let [row, column] = [0, 0];
  while (row < old.length || column < now.length) {
    if (row < old.length && old[row] === now[column]) {
      rows.push({ sign: " ", text: old[row] ?? "" });
      row += 1;
      column += 1;
    } else if (column >= now.length || (row < old.length && at(row + 1, column) >= at(row, column + 1))) {
      rows.push({ sign: "−", text: old[row] ?? "" });
      row += 1;
    } else {
      rows.push({ sign: "+", text: now[column] ?? "" });
      column += 1;
    }
  }
  return shortened(rows);
}

/** Shortens long runs of unchanged lines. */
function shortened(rows: readonly DiffRow[]): readonly DiffRow[] {
  const isNear = (place: number) =>
    rows.slice(Math.max(0, place - CONTEXT), place + CONTEXT + 1).some((it) => it.sign !== " ");
  return rows.flatMap((row, place): readonly DiffRow[] => {
    if (isNear(place)) return [row];
    return isNear(place - 1) ? [{ sign: "…", text: "" }] : [];
  });
}

/** Null for valid JSON, else the browser's error. Parsed values are not used: a number of 20 digits would lose digits. */
export function jsonProblem(text: string): string | null {
  try {
    JSON.parse(text);
    return null;
  } catch (error) {
    return (error as Error).message;
  }
}

export function isJson(text: string): boolean {
  return jsonPieces(text) !== null;
}

/** Pretty-printed JSON with every number as it was written; other text unchanged. */
export function setOut(text: string): string {
  return (
    jsonPieces(text)
      ?.map((piece) => piece.text)
      .join("") ?? text
  );
}
