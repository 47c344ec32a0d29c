import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { kafkaClassPath } from "./kafka-binaries.ts";
import { classArchive, copyDataFolder, type KafkaProperties, propertiesText } from "./kafka-templates.ts";
import { createScratch, isStopped, type Scratch } from "./scratch.ts";
import { createOrDispose, endOfLog, hasExited, type ServerProcess } from "./server-process.ts";
import { until } from "./until.ts";

export type KafkaProcessOptions = {
  readonly nodeId: number;
  readonly properties: KafkaProperties;
  /** More arguments for the format of the data folder, for instance `--add-scram`. */
  readonly formatArguments?: readonly string[];
  readonly onDisk?: boolean;
  /** Keep everything in this folder instead, for instance on a small disk. */
  readonly within?: string;
  /** A heap of a gigabyte and the optimizing compiler, as a benchmark wants. The default is small and starts fast. */
  readonly fast?: boolean;
};

/** One Kafka process with a folder of its own; what it listens on is up to its properties. */
export type KafkaProcess = ServerProcess & {
  readonly pid: number | undefined;
  /** False once it has ended, by whatever. */
  readonly isRunning: boolean;
  /** A shutdown in good order, which takes about a second. */
  stop(): Promise<void>;
};

/** Returns once the process is on its way; `ready()` tells when it serves. A cluster starts all of its nodes first. */
export async function spawnKafka(
  options: KafkaProcessOptions,
): Promise<KafkaProcess & { readonly ready: () => Promise<void> }> {
  const { onDisk, within } = options;
  const scratch = createScratch("kafka", within === undefined ? (onDisk ? "disk" : "memory") : { within });
  return await createOrDispose(new Server(options, scratch));
}

class Server implements KafkaProcess {
  readonly folder: string;
  readonly #options: KafkaProcessOptions;
  readonly #scratch: Scratch;
  readonly #propertiesFile: string;
  readonly #logFile: string;
  #child: ChildProcess | undefined;
  /** The log goes on over restarts: only what comes after this tells about the present process. */
  #logStart = 0;

  constructor(options: KafkaProcessOptions, scratch: Scratch) {
    this.folder = scratch.path;
    this.#options = options;
    this.#scratch = scratch;
    this.#propertiesFile = join(scratch.path, "server.properties");
    this.#logFile = join(scratch.path, "kafka.log");
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  get isRunning(): boolean {
    return this.#running() !== undefined;
  }

  async create(): Promise<void> {
    const data = join(this.folder, "data");
    writeFileSync(
      this.#propertiesFile,
      propertiesText({ ...this.#options.properties, "node.id": this.#options.nodeId, "log.dirs": data }),
    );
    await copyDataFolder(this.#options.nodeId, this.#options.formatArguments ?? [], data);
    await this.#launch();
  }

  async #launch(): Promise<void> {
    const flags = [...javaFlags(this.#options), `-XX:SharedArchiveFile=${await classArchive()}`];
    const log = openSync(this.#logFile, "a");
    this.#logStart = statSync(this.#logFile).size;
    const child = spawn("java", [...flags, "-cp", await kafkaClassPath(), "kafka.Kafka", this.#propertiesFile], {
      cwd: this.folder,
      stdio: ["ignore", log, log],
    });
    closeSync(log);
    await once(child, "spawn");
    this.#child = child;
  }

  async ready(): Promise<void> {
    await until("Kafka has started", () => {
      if (!this.#running()) throw new Error(`Kafka ended while it started:\n${this.logTail()}`);
      return readFileSync(this.#logFile, "utf8").slice(this.#logStart).includes("Kafka Server started");
    });
  }

  #running(): ChildProcess | undefined {
    const child = this.#child;
    return child === undefined || hasExited(child) ? undefined : child;
  }

  async kill(): Promise<void> {
    await this.#end("SIGKILL");
  }

  async stop(): Promise<void> {
    this.resume();
    await this.#end("SIGTERM");
  }

  async #end(signal: "SIGKILL" | "SIGTERM"): Promise<void> {
    const child = this.#running();
    if (!child) return;
    const exit = once(child, "exit");
    child.kill(signal);
    await exit;
  }

  /** After a kill, if it still runs. */
  async restart(): Promise<void> {
    await this.kill();
    await this.#launch();
    await this.ready();
  }

  async pause(): Promise<void> {
    const child = this.#running();
    child?.kill("SIGSTOP");
    await until("Kafka is stopped", () => child?.pid === undefined || isStopped(child.pid));
  }

  resume(): void {
    this.#running()?.kill("SIGCONT");
  }

  logTail(): string {
    return endOfLog(this.#logFile);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
    await this.#scratch.remove();
  }
}

function javaFlags({ fast }: KafkaProcessOptions): string[] {
  if (fast) return ["-Xms1g", "-Xmx1g", "-XX:+UseG1GC"];
  return ["-Xms64m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"];
}
