export const VIEWS_MAX = 50;

/** A named screen with its filter, stored in this browser. */
export interface SavedView {
  readonly name: string;
  /** The fragment of the address, with its `#`. */
  readonly hash: string;
}

/** Parses stored views. Invalid entries are dropped, above all addresses of other pages. */
export function readViews(text: string | null): readonly SavedView[] {
  try {
    const value: unknown = JSON.parse(text ?? "[]");
    return Array.isArray(value) ? value.filter(isView).slice(-VIEWS_MAX) : [];
  } catch {
    return [];
  }
}

function isView(value: unknown): value is SavedView {
  const { hash, name } = (value ?? {}) as { readonly hash?: unknown; readonly name?: unknown };
  return typeof name === "string" && name !== "" && typeof hash === "string" && hash.startsWith("#/");
}
