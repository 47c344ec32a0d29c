import type { IncomingHttpHeaders } from "node:http";

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

/** Out of reach of scripts, and of this server alone. */
export function cookieText(name: string, value: string, { isSecure, maxAgeS, sameSite }: CookieOptions): string {
  const text = `${name}=${value}; Path=/; Max-Age=${maxAgeS}; HttpOnly; SameSite=${sameSite}`;
  return isSecure ? `${text}; Secure` : text;
}

/** Whether the browser came by https. What a liar gains with this header is a cookie that his own browser keeps back. */
export function isSecure(headers: IncomingHttpHeaders, publicOrigin: string | null): boolean {
  const forwarded = String(headers["x-forwarded-proto"] ?? "").split(",")[0];
  return forwarded?.trim() === "https" || publicOrigin?.startsWith("https:") === true;
}
