import { createHmac, timingSafeEqual } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import type { AccessConfig } from "../../config/access-config.ts";

/** The value of a cookie; null without one of this name. */
export function cookieOf({ cookie = "" }: IncomingHttpHeaders, name: string): string | null {
  for (const pair of cookie.split(";")) {
    const [key, value] = pair.trim().split("=", 2);
    if (key === name && value !== undefined) return value;
  }
  return null;
}

interface CookieOptions {
  readonly maxAgeS: number;
  readonly sameSite: "Strict" | "Lax";
  readonly isSecure: boolean;
}

/**
 * Sets HttpOnly, so that scripts cannot read the cookie, and no Domain, so that browsers send it to this server only.
 */
export function cookieText(name: string, value: string, { isSecure, maxAgeS, sameSite }: CookieOptions): string {
  const text = `${name}=${value}; Path=/; Max-Age=${maxAgeS}; HttpOnly; SameSite=${sameSite}`;
  return isSecure ? `${text}; Secure` : text;
}

/**
 * Whether the browser connects over HTTPS. A client that forges x-forwarded-proto only gets a cookie that its own
 * browser does not send back.
 */
export function isSecure(headers: IncomingHttpHeaders, publicOrigin: string | null): boolean {
  const forwarded = String(headers["x-forwarded-proto"] ?? "").split(",")[0];
  return forwarded?.trim() === "https" || publicOrigin?.startsWith("https:") === true;
}

/**
 * Derived from all secrets of the access rules: equal on every instance and after a restart, different as soon as a
 * token changes, and unknown to anyone who knows only one token.
 */
export function signingKey({ oidc, sessionSecret, tokens }: AccessConfig): Buffer {
  const parts = tokens.map(({ name, digest }) => `${name}:${digest.toString("hex")}`).sort();
  const secrets = JSON.stringify([sessionSecret, oidc?.issuer, oidc?.clientId, oidc?.clientSecret, parts]);
  return createHmac("sha256", "outbox-relay signed cookies 1").update(secrets).digest();
}

/** Signs claims. `purpose` keeps a value that was signed for one use from being accepted for another. */
export function signed(key: Buffer, purpose: string, claims: object): string {
  const body = Buffer.from(JSON.stringify(claims)).toString("base64url");
  return `${body}.${signatureOf(key, purpose, body).toString("base64url")}`;
}

/** The claims; null unless this key signed the text for this purpose. */
export function opened(key: Buffer, purpose: string, text: string): unknown {
  const [, body, signature] = /^([\w-]{1,4000})\.([\w-]{43})$/.exec(text) ?? [];
  if (body === undefined || signature === undefined) return null;
  const isOurs = timingSafeEqual(Buffer.from(signature, "base64url"), signatureOf(key, purpose, body));
  return isOurs ? (JSON.parse(Buffer.from(body, "base64url").toString()) as unknown) : null;
}

function signatureOf(key: Buffer, purpose: string, body: string): Buffer {
  return createHmac("sha256", key).update(`${purpose}.${body}`).digest();
}
