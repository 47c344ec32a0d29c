import { createHash, timingSafeEqual } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { HttpError } from "./http-error.ts";
import type { Identity } from "./identity.ts";

/** Where the server listens, and the token that opens API and console; null where there is none. */
export interface AccessRules {
  readonly host: string;
  readonly adminToken: string | null;
}

/**
 * `open`: only this machine can reach it, and no token was asked for. `token`: whoever sends it may. `off`: others can
 * reach it, and nothing would keep them out.
 */
type AccessMode = "open" | "token" | "off";

function accessMode({ host, adminToken }: AccessRules): AccessMode {
  if (adminToken !== null) return "token";
  return isLoopback(host) ? "open" : "off";
}

/** For the log, when the server has started. */
export function accessText(rules: AccessRules): string {
  switch (accessMode(rules)) {
    case "token":
      return "API and console need the ADMIN_TOKEN";
    case "open":
      return "API and console are open to this machine alone";
    default:
      return `API and console are off: ${rules.host} is reached from elsewhere, and no ADMIN_TOKEN is set`;
  }
}

interface GuardedRequest {
  readonly method: string;
  readonly headers: IncomingHttpHeaders;
}

/** Throws unless the request may use API and console. */
export function requireAccess(rules: AccessRules, { method, headers }: GuardedRequest): Identity {
  const mode = accessMode(rules);
  if (mode === "off") {
    const fix = "Set ADMIN_TOKEN and send it as a bearer token, or let the service listen on 127.0.0.1 (HOST).";
    throw new HttpError(
      403,
      "API_OFF",
      "The API is off: the service listens beyond this machine without a token.",
      fix,
    );
  }
  if (mode === "token") requireToken(rules.adminToken ?? "", headers.authorization);
  else requireKnownHost(rules.host, headers.host);
  if (method !== "GET" && method !== "HEAD") requireSameSite(headers);
  return { name: mode === "token" ? "admin" : "local", role: "admin", maySeePayloads: true, via: "api" };
}

function requireToken(token: string, authorization: string | undefined): void {
  const sent = /^Bearer +(.+)$/i.exec(authorization ?? "")?.[1] ?? "";
  // Digests are of one length, which the comparison needs, and tell nothing of the token's.
  const digest = (text: string) => createHash("sha256").update(text).digest();
  if (sent !== "" && timingSafeEqual(digest(sent), digest(token))) return;
  const fix = "Send the ADMIN_TOKEN as Authorization: Bearer <token>.";
  throw new HttpError(401, "UNAUTHORIZED", "The token is missing or wrong.", fix);
}

/** A page whose name is made to point to this machine can ask, but it cannot ask under this machine's name. */
function requireKnownHost(host: string, header: string | undefined): void {
  const name = hostOf(header);
  if (name !== null && (isLoopback(name) || name === host.toLowerCase())) return;
  const fix = "Use http://127.0.0.1 or http://localhost, or set ADMIN_TOKEN.";
  throw new HttpError(
    403,
    "HOST_UNKNOWN",
    `The API does not answer under the name ${JSON.stringify(header ?? "")}.`,
    fix,
  );
}

/** Browsers say where a request comes from; other programs say nothing. */
function requireSameSite(headers: IncomingHttpHeaders): void {
  const site = headers["sec-fetch-site"];
  const isForeignSite = site !== undefined && site !== "same-origin" && site !== "none";
  const { origin } = headers;
  const isForeignOrigin = origin !== undefined && originHost(origin) !== headers.host?.toLowerCase();
  if (!isForeignSite && !isForeignOrigin) return;
  throw new HttpError(403, "CROSS_SITE", "Another site's page may not change anything here.");
}

function originHost(origin: string): string | null {
  return URL.canParse(origin) ? new URL(origin).host : null;
}

/** `[::1]:3012` and `localhost:3012` without the port. */
function hostOf(header: string | undefined): string | null {
  const match = /^(\[[0-9a-f:.]+\]|[^:[\]]+)(?::\d+)?$/i.exec(header ?? "");
  return match?.[1]?.toLowerCase().replace(/^\[(.*)\]$/, "$1") ?? null;
}

function isLoopback(host: string): boolean {
  const name = host.toLowerCase().replace(/^\[(.*)\]$/, "$1");
  return name === "localhost" || name === "::1" || /^127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(name);
}
