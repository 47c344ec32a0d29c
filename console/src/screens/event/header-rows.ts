export interface HeaderRow {
  readonly name: string;
  readonly stored: string | null;
  readonly sent: string | null;
  readonly how: "same" | "added" | "changed" | "not sent" | "unknown";
}

type HeaderValues = Readonly<Record<string, string>>;

/** Compares stored headers with sent ones; `sent` is null if no attempt recorded them. */
export function headerRows(stored: HeaderValues, sent: HeaderValues | null): readonly HeaderRow[] {
  const names = [...new Set([...Object.keys(stored), ...Object.keys(sent ?? {})])].sort();
  return names.map((name) => {
    const before = stored[name] ?? null;
    const after = sent?.[name] ?? null;
    return { name, stored: before, sent: after, how: sent === null ? "unknown" : howOf(before, after) };
  });
}

function howOf(stored: string | null, sent: string | null): HeaderRow["how"] {
  if (stored === null) return "added";
  if (sent === null) return "not sent";
  return stored === sent ? "same" : "changed";
}

/** Text for the editor: one `name: value` per line. */
export function headersText(headers: HeaderValues): string {
  return Object.entries(headers)
    .map(([name, value]) => `${name}: ${JSON.stringify(value).slice(1, -1).replaceAll('\\"', '"')}`)
    .join("\n");
}

/** Parses the editor's text; returns the number of the first invalid line. */
export function headersIn(text: string): HeaderValues | { readonly line: number } {
  const headers: Record<string, string> = {};
  for (const [at, line] of text.split("\n").entries()) {
    if (line.trim() === "") continue;
    // Only \n separates lines; other line separators may be part of a value.
    const [, name, value] = /^\s*([^:\s][^:]*?)\s*: ?(.*)$/s.exec(line) ?? [];
    if (name === undefined || value === undefined) return { line: at + 1 };
    try {
      headers[name] = JSON.parse(`"${value.replaceAll('"', '\\"')}"`) as string;
    } catch {
      return { line: at + 1 };
    }
  }
  return headers;
}
