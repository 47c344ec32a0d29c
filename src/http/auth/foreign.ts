import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import { type PeerUser, peerUserOf } from "./peer-user.ts";

/** Headers that proxies and load balancers add. Browsers never send them, and scripts of a page cannot set them. */
const PROXY_HEADERS =
  /^(?:forwarded|via|x-forwarded(?:-.+)?|x-original-.+|x-envoy-.+|x-real-ip|x-client-ip|x-cluster-client-ip|true-client-ip|cf-.+|fastly-client-ip|x-amzn-trace-id)$/;

interface Traits {
  readonly headers: IncomingHttpHeaders;
  readonly httpVersion: string;
  readonly peer: PeerUser;
}

/**
 * Why a request to the loopback address is not trusted as one of the user who runs the service; null when it is
 * trusted. Everyone can reach a proxy on this machine, and its requests all come from this machine.
 */
export function foreignBy({ headers, httpVersion, peer }: Traits): string | null {
  const header = Object.keys(headers).find((name) => PROXY_HEADERS.test(name));
  if (header !== undefined) return `it came through a proxy: it has the header ${header}`;
  // Only proxies still use HTTP/1.0: nginx does by default, and adds no header.
  if (httpVersion === "1.0") return "it used HTTP/1.0, as proxies such as nginx do";
  return peer === "other" ? "it came from a process of another user of this machine, possibly a proxy" : null;
}

/** Like `foreignBy`, for a request as Node gives it. */
export async function foreignOf({ headers, httpVersion, socket }: IncomingMessage): Promise<string | null> {
  return foreignBy({ headers, httpVersion, peer: await peerUserOf(socket) });
}
