import { randomBytes } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { z } from "zod";
import { type AccessConfig, type Rights, rightsOfGroups } from "../../config/access-config.ts";
import { cookieOf, cookieText, isSecure, opened, signed, signingKey } from "./cookies.ts";

/** Name of the console's session cookie. */
export const SESSION_COOKIE = "outbox_relay_session";
const PURPOSE = "session";
const TOKEN_LIFE_S = 12 * 3_600;

const claimsSchema = z.object({
  id: z.string(),
  /** How the user logged in. */
  by: z.enum(["token", "oidc"]),
  name: z.string(),
  /** The account's groups that had a role at the login. */
  groups: z.array(z.string()).readonly(),
  /** In seconds since 1970. */
  exp: z.int(),
});

type Claims = z.output<typeof claimsSchema>;

type Session = Claims & Rights & { readonly isExpired: boolean };

/** The session in the cookie; null without one, or if its signature does not match the current secrets. */
export function sessionOf(access: AccessConfig, headers: IncomingHttpHeaders, nowMs: number): Session | null {
  const cookie = cookieOf(headers, SESSION_COOKIE);
  if (cookie === null) return null;
  const { data: claims } = claimsSchema.safeParse(opened(signingKey(access), PURPOSE, cookie));
  if (claims === undefined) return null;
  const isExpired = claims.exp * 1_000 <= nowMs;
  // Rights are looked up again for each request, because a reload may have taken them away. Whoever knows the only
  // token could forge a session, but would gain nothing by it.
  const rights = rightsOf(access, claims);
  if (rights === null) return null;
  return { ...claims, role: rights.role, maySeePayloads: rights.maySeePayloads, isExpired };
}

function rightsOf({ oidc, tokens }: AccessConfig, { by, groups, name }: Claims): Rights | null {
  if (by === "token") return tokens.find((token) => token.name === name) ?? null;
  return oidc === null ? null : rightsOfGroups(oidc, groups);
}

/** A session of an account ends early, so that the issuer is asked again: it may have revoked a role. */
function lifeS({ oidc }: AccessConfig, by: Claims["by"]): number {
  return by === "oidc" && oidc !== null ? Math.round(oidc.sessionMs / 1_000) : TOKEN_LIFE_S;
}

/** The header that sets the cookie of a new session. */
export function sessionCookie(
  access: AccessConfig,
  owner: Omit<Claims, "exp" | "id">,
  headers: IncomingHttpHeaders,
  nowMs: number,
): string {
  const maxAgeS = lifeS(access, owner.by);
  const exp = Math.floor(nowMs / 1_000) + maxAgeS;
  const id = randomBytes(16).toString("base64url");
  return cookieText(SESSION_COOKIE, signed(signingKey(access), PURPOSE, { ...owner, id, exp }), {
    maxAgeS,
    sameSite: "Strict",
    isSecure: isSecure(headers, access.publicOrigin),
  });
}

/** The header that deletes the session cookie. */
export function noSessionCookie(access: AccessConfig, headers: IncomingHttpHeaders): string {
  return cookieText(SESSION_COOKIE, "", {
    maxAgeS: 0,
    sameSite: "Strict",
    isSecure: isSecure(headers, access.publicOrigin),
  });
}
