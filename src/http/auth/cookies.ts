import type { IncomingHttpHeaders } from "node:http";

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
