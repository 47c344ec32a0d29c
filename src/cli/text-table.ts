import { plainLine } from "./plain-text.ts";

/** Rows for people: a head, columns as wide as need be, two blanks between them; numbers stand to the right. */
export function textTable(head: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
  const texts = rows.map((row) => row.map((cell) => plainLine(String(cell))));
  const widths = head.map((title, at) => Math.max(title.length, ...texts.map((row) => (row[at] ?? "").length)));
  const isNumber = head.map((_, at) => rows.length > 0 && rows.every((row) => typeof row[at] === "number"));
  const line = (cells: readonly string[]) =>
    cells
      .map((cell, at) => (isNumber[at] ? cell.padStart(widths[at] ?? 0) : cell.padEnd(widths[at] ?? 0)))
      .join("  ")
      .trimEnd();
  return [line(head), ...texts.map(line)].map((text) => `${text}\n`).join("");
}

/** `3.2 s`, `4 min`, `2 h`, `5 d`: for ages, where the size is what counts. */
export function ageText(ms: number): string {
  const s = ms / 1_000;
  if (s < 10) return `${s.toFixed(1)} s`;
  if (s < 120) return `${Math.round(s)} s`;
  if (s < 7_200) return `${Math.round(s / 60)} min`;
  return s < 172_800 ? `${Math.round(s / 3_600)} h` : `${Math.round(s / 86_400)} d`;
}
