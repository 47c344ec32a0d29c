import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import { type PeerUser, peerUserOf } from "./peer-user.ts";

/** What proxies and balancers add to a request. No browser sends any of them, and no page can make it. */
const PROXY_HEADERS =
  /^(?:forwarded|via|x-forwarded(?:-.+)?|x-original-.+|x-envoy-.+|x-real-ip|x-client-ip|x-cluster-client-ip|true-client-ip|cf-.+|fastly-client-ip|x-amzn-trace-id)$/;

interface Traits {
  readonly headers: IncomingHttpHeaders;
  readonly httpVersion: string;
  readonly peer: PeerUser;
}

/**
 * Why a request that reached this machine's own address is not taken for one of the person who runs the service; null
 * for one that is. Everybody can reach a proxy on this machine, and to the service all of them come from this machine.
 */
export function foreignBy({ headers, httpVersion, peer }: Traits): string | null {
  const header = Object.keys(headers).find((name) => PROXY_HEADERS.test(name));
  if (header !== undefined) return `it came through a proxy, as its header ${header} says`;
  // Only proxies still ask like this: nginx does by default, and adds no header.
  if (httpVersion === "1.0") return "it came by HTTP/1.0, as proxies such as nginx ask";
  return peer === "other" ? "it came from a process of another user of this machine, perhaps a proxy" : null;
}

export async function foreignOf({ headers, httpVersion, socket }: IncomingMessage): Promise<string | null> {
  return foreignBy({ headers, httpVersion, peer: await peerUserOf(socket) });
}
