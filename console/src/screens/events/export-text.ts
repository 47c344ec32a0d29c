import type { EventRow } from "../../kit/types.ts";

const COLUMNS = [
  "source",
  "id",
  "type",
  "key",
  "correlationId",
  "createdAt",
  "state",
  "attempts",
  "reason",
  "nextAttemptAt",
  "parkedBehind",
] as const satisfies readonly (keyof EventRow)[];

export function csvText(rows: readonly EventRow[]): string {
  const lines = [COLUMNS.join(), ...rows.map((row) => COLUMNS.map((name) => csvValue(row[name])).join())];
  return `${lines.join("\r\n")}\r\n`;
}

export function jsonText(rows: readonly EventRow[]): string {
  return `${JSON.stringify(rows, null, 2)}\n`;
}

/** Spreadsheets take what begins like a formula for one; the quote in front makes it a text. */
function csvValue(value: string | number | null): string {
  if (value === null || typeof value === "number") return String(value ?? "");
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
