import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import { missingHeapFlags } from "../service/heap-limits.ts";
import type { DemoDestination } from "./demo-destination.ts";
import type { ToDestination, ToRelay } from "./destination-wire.ts";
import { DELIVER_TO_PARENT } from "./relay-settings.ts";

/** Restart delay, as in an orchestrator: a relay that cannot start must not loop at full speed. */
const RESTART_MS = 3_000;
const STOP_MS = 8_000;

/** The entry file beside this one, both in the sources and in the build. */
const ENTRY = fileURLToPath(new URL("./relay-process.ts", import.meta.url)).replace(
  /\.ts$/,
  import.meta.url.endsWith(".ts") ? ".ts" : ".js",
);

interface SupervisorOptions {
  /** The instance name, under which the console finds it. */
  readonly name: string;
  readonly env: Readonly<Record<string, string>>;
  /** A folder without configuration files. */
  readonly cwd: string;
  /** Null if a broker is configured. */
  readonly destination: DemoDestination | null;
  readonly onLogLine: (line: RelayLine) => void;
  /** Output of the relay other than its log. */
  readonly onOutput: (text: string) => void;
  readonly onEnd: (how: string) => void;
}

export interface RelayState {
  readonly name: string;
  readonly state: "starting" | "running" | "dead" | "stopped";
  readonly pid: number | null;
  /** Start of the current state. */
  readonly sinceMs: number;
  /** How often it was killed from the console. */
  readonly kills: number;
}

/** Keeps one relay running in its own process. */
export class RelaySupervisor {
  readonly #options: SupervisorOptions;
  #child: ChildProcess | null = null;
  #restart: NodeJS.Timeout | null = null;
  #stopping = true;
  #state: RelayState;

  constructor(options: SupervisorOptions) {
    this.#options = options;
    this.#state = { name: options.name, state: "stopped", pid: null, sinceMs: Date.now(), kills: 0 };
    process.once("exit", () => void this.#child?.kill("SIGKILL"));
  }

  get state(): RelayState {
    return this.#state;
  }

  start(): void {
    if (this.#child !== null) return;
    this.#stopping = false;
    const { cwd, destination, name } = this.#options;
    const env: Readonly<Record<string, string>> = { ...this.#options.env, RELAY_ID: name };
    const child = fork(ENTRY, destination === null ? [] : [DELIVER_TO_PARENT], {
      env,
      cwd,
      execArgv: [...process.execArgv, ...missingHeapFlags(process.execArgv, env.NODE_OPTIONS ?? "")],
      stdio: ["ignore", "pipe", "pipe", "ipc"],
      // Detached: Ctrl-C signals the terminal's process group, and a second signal would end the relay at once.
      detached: true,
    });
    this.#child = child;
    this.#setState({ state: "starting", pid: child.pid ?? null });
    for (const stream of [child.stdout, child.stderr]) {
      if (stream !== null) readRelayLog(stream, (line) => this.#addLogLine(line), this.#options.onOutput);
    }
    if (destination !== null) serveDestination(child, destination);
    child.on("error", () => {});
    child.once("exit", (code, signal) => this.#ended(signal ?? `exit code ${code}`));
  }

  /** Kills the process, like the kernel's OOM killer. False if there is no process. */
  kill(): boolean {
    const isKilled = this.#child?.kill("SIGKILL") ?? false;
    if (isKilled) this.#setState({ kills: this.#state.kills + 1 });
    return isKilled;
  }

  /** Stops gracefully, after a timeout by force. It can be started again. */
  async stop(): Promise<void> {
    this.#stopping = true;
    if (this.#restart !== null) clearTimeout(this.#restart);
    const child = this.#child;
    if (child === null) {
      this.#setState({ state: "stopped" });
    } else {
      const gone = once(child, "exit");
      child.kill("SIGTERM");
      const timer = setTimeout(() => child.kill("SIGKILL"), STOP_MS);
      await gone;
      clearTimeout(timer);
    }
  }

  #addLogLine(line: RelayLine): void {
    if (line.event === "InstanceJoined" && this.#state.state === "starting") this.#setState({ state: "running" });
    this.#options.onLogLine(line);
  }

  #ended(how: string): void {
    this.#child = null;
    this.#setState({ state: this.#stopping ? "stopped" : "dead", pid: null });
    if (this.#stopping) return;
    this.#options.onEnd(how);
    this.#restart = setTimeout(() => this.start(), RESTART_MS);
  }

  #setState(change: Partial<RelayState>): void {
    const sinceMs = change.state === undefined ? this.#state.sinceMs : Date.now();
    this.#state = { ...this.#state, sinceMs, ...change };
  }
}

function serveDestination(child: ChildProcess, destination: DemoDestination): void {
  const open = new Map<number, AbortController>();
  child.on("message", async (message: ToDestination) => {
    const { batch } = message;
    if (message.kind === "give up") return open.get(batch)?.abort();
    const givenUp = new AbortController();
    open.set(batch, givenUp);
    const outcomes = await destination.take(message.messages, givenUp.signal);
    open.delete(batch);
    const answer = { kind: "outcomes", batch, outcomes: outcomes ?? [] } satisfies ToRelay;
    // A relay that was killed meanwhile gets no answer, as with any broker.
    if (outcomes !== null && child.connected) child.send(answer, () => {});
  });
}

/** A line of the relay's log. */
export interface RelayLine {
  readonly level: number;
  readonly message: string;
  /** The technical event, if the line reports one. */
  readonly event?: string;
  readonly [field: string]: unknown;
}

/** Parses the lines of the relay's log. Other output, such as events on standard output, goes to `other`. */
function readRelayLog(stream: Readable, onLine: (line: RelayLine) => void, other: (text: string) => void): void {
  createInterface({ input: stream }).on("line", (text) => {
    const line = parsed(text);
    if (line === null) other(text);
    else onLine(line);
  });
}

function parsed(text: string): RelayLine | null {
  if (!text.startsWith('{"level":')) return null;
  try {
    return JSON.parse(text) as RelayLine;
  } catch {
    return null;
  }
}
