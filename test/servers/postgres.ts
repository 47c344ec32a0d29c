import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, closeSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import pg from "pg";
import { copyDataFolder, serverAccount } from "../../src/dev/embedded-postgres.ts";
import { freePort } from "./free-port.ts";
import "./german-dates.ts";
import { type PostgresVersion, postgresBinaries } from "./postgres-binaries.ts";
import { createScratch, isStopped, markedProcesses, type Scratch, signalProcess } from "./scratch.ts";
import { createOrDispose, endOfLog, hasExited, type ServerProcess } from "./server-process.ts";
import { until } from "./until.ts";

export type PostgresOptions = {
  readonly version: PostgresVersion;
  /** More arguments for `postgres`, for instance `["-c", "fsync=on"]`. They win over the defaults. */
  readonly flags?: readonly string[];
  /** Keep the data on disk, as a benchmark wants together with fsync. The default is memory, where there is enough. */
  readonly onDisk?: boolean;
  /** Keep everything in this folder instead, for instance on a small disk. */
  readonly within?: string;
  /** Put before the command, for instance `ip netns exec NAME`: then root itself starts it, under the server's account. */
  readonly prefix?: readonly string[];
  /** The language of the server's messages, where the machine has it: for PostgreSQL 15, Debian's package brings it. */
  readonly language?: "de";
  /** Follow the primary on this port, which must be fresh: both start from the same data folder. */
  readonly standbyOfPort?: number;
};

/** A private PostgreSQL on 127.0.0.1. Every password is accepted. */
export type PostgresServer = ServerProcess & {
  readonly version: PostgresVersion;
  readonly port: number;
  /** The superuser's connection string to the database `postgres`. */
  readonly url: string;
  databaseUrl(name?: string, user?: string, password?: string): string;
  createDatabase(name: string): Promise<void>;
  /** One statement as the superuser on a connection of its own. */
  query<Row extends pg.QueryResultRow = pg.QueryResultRow>(
    sql: string,
    params?: readonly unknown[],
    database?: string,
  ): Promise<pg.QueryResult<Row>>;
  stop(mode?: "fast" | "immediate"): Promise<void>;
};

// Nothing in these tests survives a crash of the machine, only crashes of processes, and those lose nothing without
// fsync. Dynamic shared memory lies in the data folder so that a killed server leaves nothing in /dev/shm.
const defaultSettings = [
  "listen_addresses=127.0.0.1",
  "unix_socket_directories=",
  "fsync=off",
  "wal_level=logical",
  "max_connections=100",
  "max_prepared_transactions=10",
  "dynamic_shared_memory_type=mmap",
  "timezone=Europe/Berlin",
  "datestyle=German, DMY",
];

export async function startPostgres(options: PostgresOptions): Promise<PostgresServer> {
  const { onDisk, within } = options;
  const scratch = createScratch("pg", within === undefined ? (onDisk ? "disk" : "memory") : { within });
  return await createOrDispose(new Server(options, scratch, await freePort()));
}

class Server implements PostgresServer {
  readonly version: PostgresVersion;
  readonly port: number;
  readonly folder: string;
  readonly #options: PostgresOptions;
  readonly #scratch: Scratch;
  readonly #data: string;
  readonly #logFile: string;
  #child: ChildProcess | undefined;

  constructor(options: PostgresOptions, scratch: Scratch, port: number) {
    this.version = options.version;
    this.port = port;
    this.folder = scratch.path;
    this.#options = options;
    this.#scratch = scratch;
    this.#data = join(scratch.path, "data");
    this.#logFile = join(scratch.path, "postgres.log");
  }

  get url(): string {
    return this.databaseUrl();
  }

  databaseUrl(name = "postgres", user = "postgres", password?: string): string {
    const account = [user, ...(password === undefined ? [] : [password])].map(encodeURIComponent).join(":");
    return `postgres://${account}@127.0.0.1:${this.port}/${encodeURIComponent(name)}`;
  }

  async create(): Promise<void> {
    await copyDataFolder(await postgresBinaries(this.version), this.version, this.#data);
    if (this.#options.standbyOfPort !== undefined) {
      const signalFile = join(this.#data, "standby.signal");
      writeFileSync(signalFile, "");
      chmodSync(signalFile, 0o666); // root writes it, the server's account removes it at promotion
    }
    await this.#launch();
  }

  async #launch(): Promise<void> {
    const binary = join(await postgresBinaries(this.version), "postgres");
    const log = openSync(this.#logFile, "a");
    const command = [binary, "-D", this.#data, "-p", String(this.port), ...this.#flags()];
    const { program, args, account } = startOf(command, await serverAccount(), this.#options.prefix ?? []);
    const child = spawn(program, args, {
      ...account,
      cwd: "/",
      env: { ...process.env, LC_ALL: "C", LANGUAGE: this.#options.language },
      stdio: ["ignore", log, log],
    });
    closeSync(log);
    await once(child, "spawn");
    this.#child = child;
    await until("PostgreSQL accepts connections", () => {
      if (hasExited(child)) throw new Error(`PostgreSQL ${this.version} ended while it started:\n${this.logTail()}`);
      return this.#pidFileSaysReady(child.pid);
    });
  }

  /** The mark goes into cluster_name because PostgreSQL shows that in the title of every child process. */
  #flags(): string[] {
    const settings = [...defaultSettings, `cluster_name=${this.#scratch.mark}`];
    if (this.#options.standbyOfPort !== undefined) {
      settings.push(`primary_conninfo=host=127.0.0.1 port=${this.#options.standbyOfPort} user=postgres`);
    }
    // The locale C has no translations; every other one follows LANGUAGE.
    if (this.#options.language !== undefined) settings.push("lc_messages=C.UTF-8");
    return [...settings.flatMap((setting) => ["-c", setting]), ...(this.#options.flags ?? [])];
  }

  /** A killed server leaves its pid file behind, hence the look at the pid. */
  #pidFileSaysReady(pid: number | undefined): boolean {
    try {
      const lines = readFileSync(join(this.#data, "postmaster.pid"), "utf8").split("\n");
      return Number(lines[0]) === pid && lines[7]?.trim() === "ready";
    } catch {
      return false;
    }
  }

  async createDatabase(name: string): Promise<void> {
    await this.query(`CREATE DATABASE ${pg.escapeIdentifier(name)}`);
  }

  async query<Row extends pg.QueryResultRow>(sql: string, params: readonly unknown[] = [], database = "postgres") {
    const client = new pg.Client({ connectionString: this.databaseUrl(database) });
    client.on("error", () => {}); // a loss of the connection also rejects the query
    try {
      await client.connect();
      return await client.query<Row>(sql, [...params]);
    } finally {
      await client.end().catch(() => {});
    }
  }

  async kill(): Promise<void> {
    // The postmaster first, or it would answer the death of a child with a crash recovery of its own.
    if (this.#child?.pid !== undefined && !hasExited(this.#child)) this.#child.kill("SIGKILL");
    await this.#gone("SIGKILL");
  }

  async stop(mode: "fast" | "immediate" = "fast"): Promise<void> {
    if (!this.#child || hasExited(this.#child)) return;
    this.resume();
    this.#child.kill(mode === "fast" ? "SIGINT" : "SIGQUIT");
    await this.#gone();
  }

  /** While one child lives, a restart fails with "pre-existing shared memory block is still in use". */
  async #gone(signal?: NodeJS.Signals): Promise<void> {
    const child = this.#child;
    await until("all PostgreSQL processes are gone", () => {
      const left = markedProcesses(this.#scratch.mark);
      if (signal) for (const pid of left) signalProcess(pid, signal);
      return left.length === 0 && (!child || hasExited(child));
    });
  }

  /** After a stop ("fast"), if it still runs. */
  async restart(): Promise<void> {
    await this.stop();
    await this.#launch();
  }

  async pause(): Promise<void> {
    // The postmaster first, so that no new child appears behind our back.
    this.#child?.kill("SIGSTOP");
    await until("all PostgreSQL processes are stopped", () => {
      const running = markedProcesses(this.#scratch.mark).filter((pid) => !isStopped(pid));
      for (const pid of running) signalProcess(pid, "SIGSTOP");
      return running.length === 0;
    });
  }

  resume(): void {
    for (const pid of markedProcesses(this.#scratch.mark)) signalProcess(pid, "SIGCONT");
  }

  logTail(): string {
    return endOfLog(this.#logFile);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // Not by kill: the children of a killed postmaster stay zombies until process 1 collects them, if ever.
    await this.stop("immediate");
    await this.kill();
    await freeSharedMemory(this.#data);
    await this.#scratch.remove();
  }
}

type Account = Awaited<ReturnType<typeof serverAccount>>;

/** A prefix needs the rights of root, so that the account changes behind it. Nothing of it forks: the pid stays. */
function startOf(command: readonly string[], account: Account, prefix: readonly string[]) {
  const change =
    account.uid === undefined ? [] : ["setpriv", `--reuid=${account.uid}`, `--regid=${account.gid}`, "--init-groups"];
  const [program = "", ...args] = prefix.length === 0 ? command : [...prefix, ...change, ...command];
  return { program, args, account: prefix.length === 0 ? account : {} };
}

/** A killed PostgreSQL leaves a small shared memory segment; line 7 of its pid file holds key and id. */
async function freeSharedMemory(data: string): Promise<void> {
  let line: string | undefined;
  try {
    line = readFileSync(join(data, "postmaster.pid"), "utf8").split("\n")[6];
  } catch {
    return; // stopped in good order
  }
  const id = line?.trim().split(/\s+/)[1];
  if (id) await promisify(execFile)("ipcrm", ["-m", id]).catch(() => {});
}
