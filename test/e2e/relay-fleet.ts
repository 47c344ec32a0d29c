import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Limits, Timing } from "../../src/core/limits.ts";
import type { ExponentialRetryOptions } from "../../src/core/retry-policy.ts";
import type { TechnicalEventName } from "../../src/ports/technical-events.ts";
import type { TableName } from "../../src/postgres/identifiers.ts";
import { programPath } from "../servers/program-path.ts";
import { createScratch, isStopped, type Scratch } from "../servers/scratch.ts";
import { until } from "../servers/until.ts";

export interface FleetOptions {
  readonly databaseUrl: string;
  readonly sinkPort?: number;
  /** The program of each process instead of relay-process.ts, and what it is told besides. */
  readonly script?: string;
  readonly variables?: Readonly<Record<string, string>>;
  readonly tables: readonly TableName[];
  readonly relaySchema?: string;
  readonly lanes?: number;
  readonly leaseMs?: number;
  readonly limits?: Partial<Limits>;
  readonly timing?: Partial<Timing>;
  readonly retry?: ExponentialRetryOptions;
}

/** A line that the process printed: a technical event, or Started, Stopping, Stopped. */
export interface ToldEvent {
  readonly name: TechnicalEventName | "Started" | "Stopping" | "Stopped";
  readonly [field: string]: unknown;
}

export interface RelayProcess {
  readonly name: string;
  readonly pid: number;
  readonly told: readonly ToldEvent[];
  readonly isRunning: boolean;
  /** Waits for an event, told before or after the call. */
  waitFor(name: ToldEvent["name"], fits?: (event: ToldEvent) => boolean, timeoutMs?: number): Promise<ToldEvent>;
  kill(): Promise<void>;
  /** Resolves when the process stands still. */
  pause(): Promise<void>;
  resume(): void;
  /** SIGTERM; resolves with the exit code when the process has ended by itself. */
  terminate(): Promise<number | null>;
}

/** Relay processes that share one database and one sink. All of them end with it, or with the test process. */
export interface RelayFleet extends AsyncDisposable {
  /** Every process ever started, in order. */
  readonly processes: readonly RelayProcess[];
  /** Resolves when the relay has started; it may not have joined yet. */
  start(name: string): Promise<RelayProcess>;
  /** All events that any process told. */
  told(name: ToldEvent["name"]): ToldEvent[];
}

const RELAY_PROCESS = programPath(join(import.meta.dirname, "relay-process.ts"));

export function createFleet(options: FleetOptions): RelayFleet {
  const scratch = createScratch("relays", "memory");
  const processes: Relay[] = [];
  return {
    processes,
    told: (name) => processes.flatMap((relay) => relay.told.filter((event) => event.name === name)),
    async start(name) {
      const relay = new Relay(name, options, scratch);
      processes.push(relay);
      await relay.waitFor("Started");
      return relay;
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(processes.map((relay) => relay.kill()));
      await scratch.remove();
    },
  };
}

class Relay implements RelayProcess {
  readonly name: string;
  readonly told: ToldEvent[] = [];
  readonly #child: ChildProcess;
  readonly #errorFile: string;

  constructor(name: string, options: FleetOptions, scratch: Scratch) {
    this.name = name;
    this.#errorFile = join(scratch.path, `${name}.err`);
    const errors = openSync(this.#errorFile, "a");
    // The mark on the command line lets the watchdog find the process, however the test process ends.
    this.#child = spawn(process.execPath, [options.script ?? RELAY_PROCESS, scratch.mark], {
      env: { ...process.env, ...variablesOf(name, options) },
      stdio: ["ignore", "pipe", errors],
    });
    closeSync(errors);
    createInterface({ input: this.#child.stdout! }).on("line", (line) => this.told.push(JSON.parse(line)));
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  get isRunning(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  async waitFor(name: ToldEvent["name"], fits: (event: ToldEvent) => boolean = () => true, timeoutMs?: number) {
    const find = () => this.told.find((event) => event.name === name && fits(event));
    return await until(
      `${this.name} tells ${name}`,
      () => {
        if (!find() && !this.isRunning) throw new Error(`${this.name} has ended: ${this.#errors()}`);
        return find();
      },
      timeoutMs,
    );
  }

  async kill(): Promise<void> {
    await this.#end("SIGKILL");
  }

  async pause(): Promise<void> {
    this.#child.kill("SIGSTOP");
    await until(`${this.name} stands still`, () => isStopped(this.#child.pid ?? 0));
  }

  resume(): void {
    this.#child.kill("SIGCONT");
  }

  async terminate(): Promise<number | null> {
    await this.#end("SIGTERM");
    if (this.#child.exitCode !== 0)
      throw new Error(`${this.name} ended with ${this.#child.exitCode}: ${this.#errors()}`);
    return this.#child.exitCode;
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    if (!this.isRunning) return;
    const exit = once(this.#child, "exit");
    this.#child.kill(signal);
    await exit;
  }

  #errors(): string {
    return readFileSync(this.#errorFile, "utf8").slice(-4_000);
  }
}

function variablesOf(name: string, options: FleetOptions): Record<string, string> {
  const tables = options.tables.map(({ schema, table }) => ({ schema, table }));
  return {
    DATABASE_URL: options.databaseUrl,
    RELAY_SCHEMA: options.relaySchema ?? "outbox_relay",
    TABLES: JSON.stringify(tables),
    SINK_PORT: String(options.sinkPort ?? ""),
    LEASE_MS: String(options.leaseMs ?? 10_000),
    INSTANCE_NAME: name,
    LANES: String(options.lanes ?? 4),
    LIMITS: JSON.stringify(options.limits ?? {}),
    TIMING: JSON.stringify(options.timing ?? {}),
    RETRY: JSON.stringify(options.retry ?? {}),
    ...options.variables,
  };
}
