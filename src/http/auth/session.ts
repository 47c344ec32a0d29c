import { randomBytes } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { z } from "zod";
import { type AccessConfig, type Rights, rightsOfGroups } from "../../config/access-config.ts";
import { cookieOf, cookieText, isSecure } from "./cookies.ts";
import { opened, signed, signingKey } from "./signed.ts";

export const SESSION_COOKIE = "outbox_relay_session";
const PURPOSE = "session";
const TOKEN_LIFE_S = 12 * 3_600;

const claimsSchema = z.object({
  id: z.string(),
  /** How its owner logged in. */
  by: z.enum(["token", "oidc"]),
  name: z.string(),
  /** Of an account: those that had rights at the login. */
  groups: z.array(z.string()).readonly(),
  /** In seconds since 1970. */
  exp: z.int(),
});

type Claims = z.output<typeof claimsSchema>;

type Session = Claims & Rights & { readonly isExpired: boolean };

/** Null without one, or with one that was not signed by the rules of the moment. */
export function sessionOf(access: AccessConfig, headers: IncomingHttpHeaders, nowMs: number): Session | null {
  const cookie = cookieOf(headers, SESSION_COOKIE);
  if (cookie === null) return null;
  const { data: claims } = claimsSchema.safeParse(opened(signingKey(access), PURPOSE, cookie));
  if (claims === undefined) return null;
  const isExpired = claims.exp * 1_000 <= nowMs;
  // What somebody may is looked up again: who knows the only token could sign, and would gain nothing; and a reload may
  // have taken it away.
  const rights = rightsOf(access, claims);
  if (rights === null) return null;
  return { ...claims, role: rights.role, maySeePayloads: rights.maySeePayloads, isExpired };
}

function rightsOf({ oidc, tokens }: AccessConfig, { by, groups, name }: Claims): Rights | null {
  if (by === "token") return tokens.find((token) => token.name === name) ?? null;
  return oidc === null ? null : rightsOfGroups(oidc, groups);
}

/** A session by an account ends soon, and the issuer is asked again: it may have taken a role away. */
function lifeS({ oidc }: AccessConfig, by: Claims["by"]): number {
  return by === "oidc" && oidc !== null ? Math.round(oidc.sessionMs / 1_000) : TOKEN_LIFE_S;
}

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

export function noSessionCookie(access: AccessConfig, headers: IncomingHttpHeaders): string {
  return cookieText(SESSION_COOKIE, "", {
    maxAgeS: 0,
    sameSite: "Strict",
    isSecure: isSecure(headers, access.publicOrigin),
  });
}
