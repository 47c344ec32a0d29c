import { apiGet, sessionEnds } from "./api.ts";
import { createStore, useStore } from "./store.ts";
import type { Session } from "./types.ts";

export const session = createStore<Session | null>(null);

let isLapsed = false;

/** Whether an OpenID Connect session expired. Signing out clears the session first, so it does not count. */
export function hasLapsed(): boolean {
  return isLapsed;
}

/** Loads the current identity. Failures are shown by the outage bar. */
export async function loadSession(): Promise<void> {
  try {
    const found = await apiGet<Session>("/session");
    isLapsed = session.get()?.identity?.by === "oidc" && found.identity === null;
    session.set(found);
  } catch {
    // Keep the last known session: an outage must not sign the user out.
  }
}

sessionEnds.subscribe(() => void loadSession());

const RANKS = ["viewer", "operator", "admin"] as const;

/** Whether to enable an action. The API checks the role again. */
export function useMay(role: (typeof RANKS)[number]): boolean {
  const identity = useStore(session)?.identity;
  return identity !== null && identity !== undefined && RANKS.indexOf(identity.role) >= RANKS.indexOf(role);
}
