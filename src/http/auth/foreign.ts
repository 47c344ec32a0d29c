import { readFile } from "node:fs/promises";
import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { endianness } from "node:os";

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

/** The user that owns the other end of a local connection; `unknown` where the operating system does not show it. */
type PeerUser = "own" | "other" | "unknown";

interface Ends {
  readonly remoteAddress?: string | undefined;
  readonly remotePort?: number | undefined;
  readonly localAddress?: string | undefined;
  readonly localPort?: number | undefined;
}

const known = new WeakMap<Socket, Promise<PeerUser>>();

/** Looked up once per connection. */
function peerUserOf(socket: Socket): Promise<PeerUser> {
  const found = known.get(socket) ?? lookUp(socket);
  known.set(socket, found);
  return found;
}

async function lookUp(socket: Ends): Promise<PeerUser> {
  const ownUid = process.getuid?.();
  if (ownUid === undefined) return "unknown";
  const file = socket.remoteAddress?.includes(":") === true ? "/proc/net/tcp6" : "/proc/net/tcp";
  const table = await readFile(file, "utf8").catch(() => null);
  return table === null ? "unknown" : peerIn(table, socket, ownUid);
}

/**
 * Searches a table in the format of Linux's /proc/net/tcp. Root counts as our own user: it may do everything here
 * anyway.
 */
export function peerIn(table: string, ends: Ends, ownUid: number): PeerUser {
  const here = endText(ends.localAddress, ends.localPort);
  const there = endText(ends.remoteAddress, ends.remotePort);
  const rows = table.split("\n").map((line) => line.trim().split(/\s+/));
  const rowOf = (local: string, remote: string) => rows.find(([, own, other]) => own === local && other === remote);
  // Some sandboxes show no connections at all.
  if (rowOf(here, there) === undefined) return "unknown";
  const [, , , , , , , uid, , inode] = rowOf(there, here) ?? [];
  // The kernel lists a closed socket under root, although no process owns it.
  if (uid === undefined || inode === undefined || inode === "0") return "other";
  return Number(uid) === ownUid || uid === "0" ? "own" : "other";
}

/** `0100007F:0BC4`: each word of the address in this machine's byte order, the port in hexadecimal. */
function endText(address = "", port = 0): string {
  const words = address.includes(":")
    ? [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]
    : address.split(".").map(Number);
  const bytes = Buffer.from(words);
  if (endianness() === "LE") bytes.swap32();
  return `${bytes.toString("hex").toUpperCase()}:${port.toString(16).toUpperCase().padStart(4, "0")}`;
}
