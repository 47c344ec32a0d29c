import { apiGet, sessionEnds } from "./api.ts";
import { createStore, useStore } from "./store.ts";
import type { Session } from "./types.ts";

export const session = createStore<Session | null>(null);

let isLapsed = false;

/** Whether the session of an account ran out by itself; logging out forgets the session before. */
export function hasLapsed(): boolean {
  return isLapsed;
}

/** Asks who is there; what goes wrong is told by the outage. */
export async function loadSession(): Promise<void> {
  try {
    const found = await apiGet<Session>("/session");
    isLapsed = session.get()?.identity?.by === "oidc" && found.identity === null;
    session.set(found);
  } catch {
    // The last known one stays: an outage signs nobody out.
  }
}

sessionEnds.subscribe(() => void loadSession());

const RANKS = ["viewer", "operator", "admin"] as const;

/** Whether to offer an action at all. The API decides in any case. */
export function useMay(role: (typeof RANKS)[number]): boolean {
  const identity = useStore(session)?.identity;
  return identity !== null && identity !== undefined && RANKS.indexOf(identity.role) >= RANKS.indexOf(role);
}
