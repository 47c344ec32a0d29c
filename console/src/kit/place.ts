/** The current address. It holds the whole state of a screen, so that a user can send it to a colleague. */
export interface Place {
  readonly path: string;
  readonly query: Query;
}

export type Query = Readonly<Record<string, string>>;

/** Empty values are left out of the address. */
export type QueryValues = Readonly<Record<string, string | number | boolean | null | undefined>>;

export function parsePlace(hash: string): Place {
  const text = hash.replace(/^#/, "");
  const cut = text.indexOf("?");
  const path = `/${(cut < 0 ? text : text.slice(0, cut)).replace(/^\/+|\/+$/g, "")}`;
  return { path, query: Object.fromEntries(new URLSearchParams(cut < 0 ? "" : text.slice(cut + 1))) };
}

export function queryText(query: QueryValues): string {
  const given = Object.entries(query).flatMap(([name, value]) =>
    value === undefined || value === null || value === "" || value === false ? [] : [[name, String(value)]],
  );
  // Filters are full of colons and commas, which are legal in a fragment.
  return new URLSearchParams(given).toString().replaceAll("%3A", ":").replaceAll("%2C", ",");
}

/** The address of a screen, for `href`. */
export function placeHash(path: string, query: QueryValues = {}): string {
  const text = queryText(query);
  return `#${path}${text === "" ? "" : `?${text}`}`;
}

/** One segment of a path: ids and keys may hold slashes. */
export function segment(text: string): string {
  return encodeURIComponent(text);
}

/** The values of the `:names` in a pattern, or null if the path does not match. */
export function matchPath(pattern: string, path: string): Query | null {
  const wanted = pattern.split("/");
  const parts = path.split("/");
  if (wanted.length !== parts.length) return null;
  const params: Record<string, string> = {};
  for (const [at, name] of wanted.entries()) {
    const part = parts[at] ?? "";
    if (name.startsWith(":")) params[name.slice(1)] = decoded(part);
    else if (name !== part) return null;
  }
  return params;
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    // Not an escape sequence: keep the percent sign as it is.
    return part;
  }
}
