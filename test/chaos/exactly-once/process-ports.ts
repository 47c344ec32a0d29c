import { readdirSync, readFileSync, readlinkSync } from "node:fs";

/** The local ports of a process's TCP connections: a proxy knows its clients by them and by nothing else. */
export function localPortsOf(pid: number): Set<number> {
  const inodes = socketInodesOf(pid);
  const ports = new Set<number>();
  for (const line of readFileSync("/proc/net/tcp", "latin1").split("\n").slice(1)) {
    const fields = line.trim().split(/\s+/);
    const [, port] = fields[1]?.split(":") ?? [];
    if (port !== undefined && inodes.has(fields[9] ?? "")) ports.add(Number.parseInt(port, 16));
  }
  return ports;
}

function socketInodesOf(pid: number): Set<string> {
  const folder = `/proc/${pid}/fd`;
  const inodes = new Set<string>();
  try {
    for (const name of readdirSync(folder)) {
      const inode = /^socket:\[(\d+)\]$/.exec(linkOf(`${folder}/${name}`))?.[1];
      if (inode !== undefined) inodes.add(inode);
    }
  } catch {
    // it has ended
  }
  return inodes;
}

function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return ""; // closed in the meantime
  }
}
