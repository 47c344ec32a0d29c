import type { IncomingHttpHeaders } from "node:http";
import { z } from "zod";
import { type AccessConfig, ROLES } from "../../config/access-config.ts";
import { cookieOf, cookieText, isSecure } from "./cookies.ts";
import { opened, signed, signingKey } from "./signed.ts";

export const SESSION_COOKIE = "outbox_relay_session";
const PURPOSE = "session";
const LIFE_S = 12 * 3_600;

const claimsSchema = z.object({
  /** How its owner logged in. */
  by: z.enum(["token", "oidc"]),
  name: z.string(),
  role: z.enum(ROLES),
  payloads: z.boolean(),
  /** In seconds since 1970. */
  exp: z.int(),
});

type Claims = z.output<typeof claimsSchema>;

type Session = Claims & { readonly isExpired: boolean };

/** Null without one, or with one that was not signed by the rules of the moment. */
export function sessionOf(access: AccessConfig, headers: IncomingHttpHeaders, nowMs: number): Session | null {
  const cookie = cookieOf(headers, SESSION_COOKIE);
  if (cookie === null) return null;
  const { data: claims } = claimsSchema.safeParse(opened(signingKey(access), PURPOSE, cookie));
  if (claims === undefined) return null;
  const isExpired = claims.exp * 1_000 <= nowMs;
  if (claims.by === "oidc") return access.oidc === null ? null : { ...claims, isExpired };
  // What a token may is looked up again: who knows the only token could sign, and would gain nothing.
  const token = access.tokens.find(({ name }) => name === claims.name);
  if (token === undefined) return null;
  return { ...claims, role: token.role, payloads: token.maySeePayloads, isExpired };
}

export function sessionCookie(
  access: AccessConfig,
  owner: Omit<Claims, "exp">,
  headers: IncomingHttpHeaders,
  nowMs: number,
): string {
  const exp = Math.floor(nowMs / 1_000) + LIFE_S;
  return cookieText(SESSION_COOKIE, signed(signingKey(access), PURPOSE, { ...owner, exp }), {
    maxAgeS: LIFE_S,
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
