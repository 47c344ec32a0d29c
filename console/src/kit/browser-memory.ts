const PREFIX = "outbox-relay.";

/** A stored choice of this browser; null if it was not stored or storage is blocked. */
export function recall(name: string): string | null {
  try {
    return localStorage.getItem(PREFIX + name);
  } catch {
    return null;
  }
}

export function remember(name: string, text: string): void {
  try {
    localStorage.setItem(PREFIX + name, text);
  } catch {
    // Storage is blocked: the choice lasts until the page is closed.
  }
}
