import type { IncomingHttpHeaders } from "node:http";
import { HttpError } from "../http-error.ts";

/** Defends against DNS rebinding: a page whose host name resolves to this machine still sends its own name as Host. */
export function requireKnownHost(host: string, header: string | undefined): void {
  const name = hostOf(header);
  if (name !== null && (isLoopback(name) || name === host.toLowerCase())) return;
  const what = `The Host header ${JSON.stringify(header ?? "")} is not a name of this machine.`;
  throw new HttpError(403, "HOST_UNKNOWN", what, "Use http://127.0.0.1 or http://localhost, or set ADMIN_TOKEN.");
}

/**
 * Browsers send the origin of a request; other programs send none. Forwarded host headers are not trusted, because any
 * client can send them.
 */
export function requireSameSite(headers: IncomingHttpHeaders, publicOrigin: string | null): void {
  const site = headers["sec-fetch-site"];
  const isForeignSite = site !== undefined && site !== "same-origin" && site !== "none";
  const { origin } = headers;
  const isForeignOrigin = origin !== undefined && origin !== publicOrigin && originHost(origin) !== hostHeader(headers);
  if (!isForeignSite && !isForeignOrigin) return;
  const fix = "If this is the console behind a proxy, set PUBLIC_URL to the address that the browser shows.";
  throw new HttpError(403, "CROSS_SITE", "A page of another site must not do this.", fix);
}

function hostHeader({ host }: IncomingHttpHeaders): string | undefined {
  return host?.toLowerCase();
}

function originHost(origin: string): string | null {
  return URL.canParse(origin) ? new URL(origin).host : null;
}

/** The host of `[::1]:3012` or `localhost:3012`, without the port. */
function hostOf(header: string | undefined): string | null {
  const match = /^(\[[0-9a-f:.]+\]|[^:[\]]+)(?::\d+)?$/i.exec(header ?? "");
  return match?.[1]?.toLowerCase().replace(/^\[(.*)\]$/, "$1") ?? null;
}

/** Whether a host name or address is this machine's own. */
export function isLoopback(host: string): boolean {
  const name = host.toLowerCase().replace(/^\[(.*)\]$/, "$1");
  return name === "localhost" || name === "::1" || /^127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(name);
}
