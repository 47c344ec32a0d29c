import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { missingHeapFlags } from "../cli/heap-limits.ts";
import type { DemoDestination } from "./demo-destination.ts";
import type { ToDestination, ToRelay } from "./destination-wire.ts";
import { type RelayLine, readRelayLog } from "./relay-log.ts";
import { DELIVER_TO_PARENT } from "./relay-settings.ts";

/** As an orchestrator does it: not at once, so that a relay which cannot start does not eat the machine. */
const RESTART_MS = 3_000;
const STOP_MS = 8_000;

/** The file beside this one, in the sources as well as in what is built of them. */
const ENTRY = fileURLToPath(new URL("./relay-process.ts", import.meta.url)).replace(
  /\.ts$/,
  import.meta.url.endsWith(".ts") ? ".ts" : ".js",
);

interface SupervisorOptions {
  /** In the list of instances, where the page finds it. */
  readonly name: string;
  readonly env: Readonly<Record<string, string>>;
  /** A folder without settings of anybody's. */
  readonly cwd: string;
  /** Null when a broker is configured. */
  readonly destination: DemoDestination | null;
  readonly heard: (line: RelayLine) => void;
  /** What the relay writes besides its log. */
  readonly wrote: (text: string) => void;
  readonly ended: (how: string) => void;
}

export interface RelayState {
  readonly name: string;
  readonly state: "starting" | "running" | "dead" | "stopped";
  readonly pid: number | null;
  /** Since when it is in this state. */
  readonly sinceMs: number;
  /** How often it was killed from the page. */
  readonly kills: number;
}

/** Keeps one relay running in a process of its own. */
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
      // In a process group of its own: Ctrl-C goes to the terminal's group, and a second signal would end it at once.
      detached: true,
    });
    this.#child = child;
    this.#turn({ state: "starting", pid: child.pid ?? null });
    for (const stream of [child.stdout, child.stderr]) {
      if (stream !== null) readRelayLog(stream, (line) => this.#heard(line), this.#options.wrote);
    }
    if (destination !== null) serveDestination(child, destination);
    child.on("error", () => {});
    child.once("exit", (code, signal) => this.#ended(signal ?? `exit code ${code}`));
  }

  /** As the kernel's memory killer or a lost machine does it. False when there is nothing to kill. */
  kill(): boolean {
    const isKilled = this.#child?.kill("SIGKILL") ?? false;
    if (isKilled) this.#turn({ kills: this.#state.kills + 1 });
    return isKilled;
  }

  /** In good order, and by force when that takes too long. It can be started again. */
  async stop(): Promise<void> {
    this.#stopping = true;
    if (this.#restart !== null) clearTimeout(this.#restart);
    const child = this.#child;
    if (child === null) {
      this.#turn({ state: "stopped" });
    } else {
      const gone = once(child, "exit");
      child.kill("SIGTERM");
      const timer = setTimeout(() => child.kill("SIGKILL"), STOP_MS);
      await gone;
      clearTimeout(timer);
    }
  }

  #heard(line: RelayLine): void {
    if (line.event === "InstanceJoined" && this.#state.state === "starting") this.#turn({ state: "running" });
    this.#options.heard(line);
  }

  #ended(how: string): void {
    this.#child = null;
    this.#turn({ state: this.#stopping ? "stopped" : "dead", pid: null });
    if (this.#stopping) return;
    this.#options.ended(how);
    this.#restart = setTimeout(() => this.start(), RESTART_MS);
  }

  #turn(change: Partial<RelayState>): void {
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
    // Whoever was killed meanwhile hears nothing, as with any broker.
    if (outcomes !== null && child.connected) child.send(answer, () => {});
  });
}
