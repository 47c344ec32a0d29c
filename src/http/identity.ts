import type { IncomingHttpHeaders } from "node:http";
import { z } from "zod";
import { type Rights, ROLES, type Role } from "../config/access-config.ts";
import type { Author } from "../operations/audit/author.ts";

export { ROLES, type Role };

/** The authenticated caller. */
export interface Identity extends Rights {
  /** As in the audit. */
  readonly name: string;
  readonly via: "api" | "console";
}

/** Whether the caller has at least this role. */
export function hasRole({ role }: Identity, wanted: Role): boolean {
  return ROLES.indexOf(role) >= ROLES.indexOf(wanted);
}

/** The author of a change, for the audit. */
export function authorOf({ name, via }: Identity, reason?: string): Author {
  return { by: name, via, reason };
}

/** The console names itself in a header. */
export function viaOf(headers: IncomingHttpHeaders): Identity["via"] {
  return headers["x-outbox-relay-console"] === "1" ? "console" : "api";
}

/** The database can store every character except NUL. */
const noted = (most: number) =>
  z
    .string()
    .min(1)
    .max(most)
    .regex(/^[^\0]*$/);

export const by = noted(200).optional().describe("Who requested it, for the audit");
export const mustReason = noted(1_000).describe("The reason, for the audit");
export const mayReason = mustReason.optional();

/** The guard's name for a local user without a token: there the given name is all that is known. */
const LOCAL = "local";

/** The caller, and the person it acts for: a given name does not prove who holds the token. */
export function namedAuthor(identity: Identity, by: string | undefined, reason?: string): Author {
  const author = authorOf(identity, reason);
  if (identity.name === LOCAL) return { ...author, by: by ?? identity.via };
  return by === undefined || by === identity.name ? author : { ...author, by: `${by} (${identity.name})` };
}
