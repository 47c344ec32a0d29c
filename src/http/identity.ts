import type { IncomingHttpHeaders } from "node:http";
import type { Rights, Role } from "../config/access-config.ts";
import { ROLES } from "../config/access-config.ts";
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
