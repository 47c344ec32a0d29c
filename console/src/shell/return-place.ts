const NAME = "outbox-relay.place";

/** The issuer redirects back without the fragment: this restores the screen that the user opened. */
export function rememberPlace(): void {
  try {
    if (location.hash !== "") sessionStorage.setItem(NAME, location.hash);
  } catch {
    // Storage is blocked: the user starts at the overview.
  }
}

export function returnToPlace(): void {
  try {
    const place = sessionStorage.getItem(NAME);
    sessionStorage.removeItem(NAME);
    if (place !== null && location.hash === "") location.hash = place;
  } catch {
    // Storage is blocked.
  }
}
