import { type Paint, paint, plainLine } from "./plain-text.ts";

/** Colours of states that an operator looks for. */
const STATE_PAINTS: Readonly<Record<string, Paint>> = {
  ...{ delivered: "green", running: "green", done: "green" },
  ...{ parked: "yellow", paused: "yellow", retrying: "yellow", unrouted: "yellow" },
  ...{ dead: "red", broken: "red", "not served": "red", stopped: "red" },
};

/** A text table: columns as wide as needed, two blanks between them, numbers right-aligned. */
export function textTable(head: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
  const texts = rows.map((row) => row.map((cell) => plainLine(String(cell))));
  const widths = head.map((title, at) => Math.max(title.length, ...texts.map((row) => (row[at] ?? "").length)));
  const isNumber = head.map((_, at) => rows.length > 0 && rows.every((row) => typeof row[at] === "number"));
  const padded = (cells: readonly string[]) =>
    cells.map((cell, at) => (isNumber[at] ? cell.padStart(widths[at] ?? 0) : cell.padEnd(widths[at] ?? 0)));
  const stateAt = head.indexOf("STATE");
  const line = (cells: readonly string[]) => {
    const style = STATE_PAINTS[cells[stateAt] ?? ""];
    const shown = padded(cells).map((cell, at) => (at === stateAt && style ? paint(style, cell) : cell));
    return shown.join("  ").trimEnd();
  };
  return [paint("dim", padded(head).join("  ").trimEnd()), ...texts.map(line)].map((text) => `${text}\n`).join("");
}

/** An age, rounded: `3.2 s`, `4 min`, `2 h`, `5 d`. */
export function ageText(ms: number): string {
  const s = ms / 1_000;
  if (s < 10) return `${s.toFixed(1)} s`;
  if (s < 120) return `${Math.round(s)} s`;
  if (s < 7_200) return `${Math.round(s / 60)} min`;
  return s < 172_800 ? `${Math.round(s / 3_600)} h` : `${Math.round(s / 86_400)} d`;
}
