import type { DeadLetter } from "../dead-letters/dead-letter-list.ts";
import type { ListedEvent } from "../events/event-list.ts";

/** `csv` for spreadsheets, `json` for one list, `ndjson` for one line per row. */
export const EXPORT_FORMS = ["csv", "json", "ndjson"] as const;

/** One of the formats. */
export type ExportForm = (typeof EXPORT_FORMS)[number];

/** Content types by format. */
export const EXPORT_TYPES: Readonly<Record<ExportForm, string>> = {
  csv: "text/csv; charset=utf-8",
  json: "application/json",
  ndjson: "application/x-ndjson",
};

/** Columns of exported events. */
export const EVENT_COLUMNS = [
  ...["source", "id", "type", "key", "correlationId", "createdAt", "state", "attempts", "reason", "nextAttemptAt"],
  ...["parkedBehind", "pipeline", "waitsFor"],
] as readonly (keyof ListedEvent)[];

/** Columns of exported dead letters. */
export const LETTER_COLUMNS = [
  ...["source", "pipeline", "id", "type", "key", "correlationId", "reason", "group", "failures", "firstFailedAt"],
  "lastFailedAt",
] as readonly (keyof DeadLetter)[];

/** Encodes pages as one text, one piece per page. A JSON list that was aborted lacks its end, so readers notice. */
export async function* exportText<Row extends object>(
  pages: AsyncIterable<readonly Row[]>,
  columns: readonly (keyof Row & string)[],
  form: ExportForm,
): AsyncGenerator<string> {
  if (form === "csv") yield `${columns.join()}\r\n`;
  let count = 0;
  for await (const rows of pages) {
    if (rows.length === 0) continue;
    if (form === "csv") yield rows.map((row) => `${columns.map((name) => csvValue(row[name])).join()}\r\n`).join("");
    else if (form === "ndjson") yield rows.map((row) => `${JSON.stringify(row)}\n`).join("");
    else yield `${count === 0 ? "[\n" : ",\n"}${rows.map((row) => JSON.stringify(row)).join(",\n")}`;
    count += rows.length;
  }
  if (form === "json") yield count === 0 ? "[]\n" : "\n]\n";
}

/** Spreadsheets run values that start like a formula; a leading quote makes them text. */
function csvValue(value: unknown): string {
  if (value === null || value === undefined || typeof value === "number") return String(value ?? "");
  const plain = typeof value === "string" ? value : JSON.stringify(value);
  const text = /^[\s\0]*[=+\-@|\t\r\n\uff0b\uff0d\uff1d\uff20]/.test(plain) ? `'${plain}` : plain;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
