import { randomInt } from "node:crypto";
import { closeSync, mkdirSync, openSync, readFileSync, rmSync, writeSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

// Below the kernel's range for outgoing connections (from 32768). Inside it, a client could be given the port of a
// server that is down for a moment, or even connect to itself while it retries, and the restart would find it taken.
const portMin = 10_000;
const portMax = 30_000;

/** One file per port that a test process on this machine has been given, with the id of the process. */
const RESERVED = join(tmpdir(), "outbox-relay-ports");

const mine = new Set<string>();

/**
 * A port on 127.0.0.1 that nothing listens on. No other test process gets it while this one lives: not between the choice
 * and the start of the server, and not while the server is down between kill and restart.
 */
export async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < 100; attempt++) {
    const port = randomInt(portMin, portMax);
    if (reserve(port) && (await canListen(port))) return port;
  }
  throw new Error(`no free port between ${portMin} and ${portMax}`);
}

function release(): void {
  for (const file of mine) rmSync(file, { force: true });
}

function reserve(port: number): boolean {
  mkdirSync(RESERVED, { recursive: true });
  const file = join(RESERVED, String(port));
  if (isOwned(file)) return false;
  try {
    const opened = openSync(file, "wx");
    writeSync(opened, String(process.pid));
    closeSync(opened);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
  if (mine.size === 0) process.once("exit", release);
  mine.add(file);
  return true;
}

/** What a killed process has left is removed, for the next attempt. */
function isOwned(file: string): boolean {
  let owner: string;
  try {
    owner = readFileSync(file, "utf8");
  } catch {
    return false;
  }
  // Empty: it is being written at this moment.
  if (owner === "" || isAlive(Number(owner))) return true;
  rmSync(file, { force: true });
  return true;
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

function canListen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once("error", () => resolve(false));
    probe.listen(port, "127.0.0.1", () => probe.close(() => resolve(true)));
  });
}
