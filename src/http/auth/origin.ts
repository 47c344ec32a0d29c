import type { IncomingHttpHeaders } from "node:http";
import { HttpError } from "../http-error.ts";

/** A page whose name is made to point to this machine can ask, but it cannot ask under this machine's name. */
export function requireKnownHost(host: string, header: string | undefined): void {
  const name = hostOf(header);
  if (name !== null && (isLoopback(name) || name === host.toLowerCase())) return;
  const what = `The API does not answer under the name ${JSON.stringify(header ?? "")}.`;
  throw new HttpError(403, "HOST_UNKNOWN", what, "Use http://127.0.0.1 or http://localhost, or set ADMIN_TOKEN.");
}

/**
 * Browsers say where a request comes from; other programs say nothing. What proxies say of the host is not believed:
 * anybody can send it.
 */
export function requireSameSite(headers: IncomingHttpHeaders, publicOrigin: string | null): void {
  const site = headers["sec-fetch-site"];
  const isForeignSite = site !== undefined && site !== "same-origin" && site !== "none";
  const { origin } = headers;
  const isForeignOrigin = origin !== undefined && origin !== publicOrigin && originHost(origin) !== hostHeader(headers);
  if (!isForeignSite && !isForeignOrigin) return;
  const fix = "If this is the console behind a proxy: set PUBLIC_URL to the address in the browser.";
  throw new HttpError(403, "CROSS_SITE", "Another site's page may not do this.", fix);
}

function hostHeader({ host }: IncomingHttpHeaders): string | undefined {
  return host?.toLowerCase();
}

function originHost(origin: string): string | null {
  return URL.canParse(origin) ? new URL(origin).host : null;
}

/** `[::1]:3012` and `localhost:3012` without the port. */
function hostOf(header: string | undefined): string | null {
  const match = /^(\[[0-9a-f:.]+\]|[^:[\]]+)(?::\d+)?$/i.exec(header ?? "");
  return match?.[1]?.toLowerCase().replace(/^\[(.*)\]$/, "$1") ?? null;
}

export function isLoopback(host: string): boolean {
  const name = host.toLowerCase().replace(/^\[(.*)\]$/, "$1");
  return name === "localhost" || name === "::1" || /^127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(name);
}
