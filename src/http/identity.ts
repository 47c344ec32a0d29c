import type { Author } from "../operations/author.ts";

/** Each may do what the ones before it may. A viewer looks, an operator acts on events, an admin on everything. */
export const ROLES = ["viewer", "operator", "admin"] as const;

export type Role = (typeof ROLES)[number];

/** Who asks. */
export interface Identity {
  /** As the audit names it. */
  readonly name: string;
  readonly role: Role;
  /** Payloads may hold what not everybody who steers the relay may read. */
  readonly maySeePayloads: boolean;
  readonly via: "api" | "console";
}

export function hasRole({ role }: Identity, wanted: Role): boolean {
  return ROLES.indexOf(role) >= ROLES.indexOf(wanted);
}

export function authorOf({ name, via }: Identity, reason?: string): Author {
  return { by: name, via, reason };
}
