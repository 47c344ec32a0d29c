import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync } from "node:fs";
import { join } from "node:path";
import { createScratch, isStopped, markedProcesses, type Scratch, signalProcess } from "./scratch.ts";
import { createOrDispose, endOfLog, hasExited, type ServerProcess } from "./server-process.ts";
import { until } from "./until.ts";

export interface PlainServerOptions {
  /** For texts and the folder's name. */
  readonly name: string;
  /** The folder's path must be on the command line: that is how what belongs to the server is found. */
  readonly command: (folder: string) => {
    readonly program: string;
    readonly args: readonly string[];
    readonly env?: NodeJS.ProcessEnv;
  };
  /** Writes what the first start needs into the folder. */
  readonly prepare?: (folder: string) => void | Promise<void>;
  /** Whether it serves; asked again and again while it starts. */
  readonly isReady: (folder: string) => Promise<boolean>;
}

/** RabbitMQ takes 4 s of processor time to start: minutes where many processes share a core. */
const START_MS_MAX = 240_000;

/** A server of one program. Returns when it serves. */
export async function startPlainServer(options: PlainServerOptions): Promise<ServerProcess> {
  return await createOrDispose(new PlainServer(options, createScratch(options.name, "memory")));
}

class PlainServer implements ServerProcess {
  readonly folder: string;
  readonly #options: PlainServerOptions;
  readonly #scratch: Scratch;
  #child: ChildProcess | undefined;

  constructor(options: PlainServerOptions, scratch: Scratch) {
    this.folder = scratch.path;
    this.#options = options;
    this.#scratch = scratch;
  }

  async create(): Promise<void> {
    await this.#options.prepare?.(this.folder);
    await this.#launch();
  }

  async #launch(): Promise<void> {
    const { command, isReady, name } = this.#options;
    const { program, args, env } = command(this.folder);
    const log = openSync(this.#logFile, "a");
    const child = spawn(program, args, { cwd: this.folder, stdio: ["ignore", log, log], ...(env ? { env } : {}) });
    closeSync(log);
    await once(child, "spawn");
    this.#child = child;
    const serves = async () => {
      if (hasExited(child)) throw new Error(`${name} ended while it started:\n${this.logTail()}`);
      return await isReady(this.folder).catch(() => false);
    };
    await until(`${name} has started`, serves, START_MS_MAX);
  }

  async kill(): Promise<void> {
    const child = this.#child;
    const exit = child === undefined || hasExited(child) ? null : once(child, "exit");
    for (const pid of this.#pids()) signalProcess(pid, "SIGKILL");
    await exit;
    await until(`${this.#options.name} is gone`, () => this.#pids().length === 0);
  }

  async restart(): Promise<void> {
    await this.kill();
    await this.#launch();
  }

  async pause(): Promise<void> {
    const pids = this.#pids();
    for (const pid of pids) signalProcess(pid, "SIGSTOP");
    await until(`${this.#options.name} is stopped`, () => pids.every(isStopped));
  }

  resume(): void {
    for (const pid of this.#pids()) signalProcess(pid, "SIGCONT");
  }

  logTail(): string {
    return endOfLog(this.#logFile);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
    await this.#scratch.remove();
  }

  get #logFile(): string {
    return join(this.folder, "server.log");
  }

  /** With whatever else it started. */
  #pids(): number[] {
    return markedProcesses(this.#scratch.mark);
  }
}
