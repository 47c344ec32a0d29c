export interface HeaderRow {
  readonly name: string;
  readonly stored: string | null;
  readonly sent: string | null;
  readonly how: "same" | "added" | "changed" | "not sent" | "unknown";
}

type HeaderValues = Readonly<Record<string, string>>;

/** Headers as they are stored beside those that went out; `sent` is null where nobody noted them. */
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

/** For a field to edit them in: one `name: value` a line. */
export function headersText(headers: HeaderValues): string {
  return Object.entries(headers)
    .map(([name, value]) => `${name}: ${JSON.stringify(value).slice(1, -1).replaceAll('\\"', '"')}`)
    .join("\n");
}

/** The same read back; a line that is none is told by its number. */
export function headersIn(text: string): HeaderValues | { readonly line: number } {
  const headers: Record<string, string> = {};
  for (const [at, line] of text.split("\n").entries()) {
    if (line.trim() === "") continue;
    // Of the separators of lines only one is meant here; others may stand in a value.
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
