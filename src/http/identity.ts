import type { IncomingHttpHeaders } from "node:http";
import type { Rights, Role } from "../config/access-config.ts";
import { ROLES } from "../config/access-config.ts";
import type { Author } from "../operations/author.ts";

export { ROLES, type Role };

/** Who asks. */
export interface Identity extends Rights {
  /** As the audit names it. */
  readonly name: string;
  readonly via: "api" | "console";
}

export function hasRole({ role }: Identity, wanted: Role): boolean {
  return ROLES.indexOf(role) >= ROLES.indexOf(wanted);
}

export function authorOf({ name, via }: Identity, reason?: string): Author {
  return { by: name, via, reason };
}

/** The console says of itself that it is the console. */
export function viaOf(headers: IncomingHttpHeaders): Identity["via"] {
  return headers["x-outbox-relay-console"] === "1" ? "console" : "api";
}
