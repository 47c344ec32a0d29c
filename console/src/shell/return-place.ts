const NAME = "outbox-relay.place";

/** The issuer sends people back to the page without the part behind the #: here they asked to go. */
export function rememberPlace(): void {
  try {
    if (location.hash !== "") sessionStorage.setItem(NAME, location.hash);
  } catch {
    // Where nothing may be stored they begin at the overview.
  }
}

export function returnToPlace(): void {
  try {
    const place = sessionStorage.getItem(NAME);
    sessionStorage.removeItem(NAME);
    if (place !== null && location.hash === "") location.hash = place;
  } catch {
    // As above.
  }
}
