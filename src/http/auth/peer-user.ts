import { readFile } from "node:fs/promises";
import type { Socket } from "node:net";
import { endianness } from "node:os";

/** The user that owns the other end of a local connection; `unknown` where the operating system does not show it. */
export type PeerUser = "own" | "other" | "unknown";

interface Ends {
  readonly remoteAddress?: string | undefined;
  readonly remotePort?: number | undefined;
  readonly localAddress?: string | undefined;
  readonly localPort?: number | undefined;
}

const known = new WeakMap<Socket, Promise<PeerUser>>();

/** Looked up once per connection. */
export function peerUserOf(socket: Socket): Promise<PeerUser> {
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
