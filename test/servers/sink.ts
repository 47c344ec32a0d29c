import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { freePort } from "./free-port.ts";
import { createScratch, isStopped, type Scratch } from "./scratch.ts";
import type { Fault } from "./sink-faults.ts";
import { type Arrival, type Attempt, createLogReader } from "./sink-log.ts";
import type { SinkOrder } from "./sink-process.ts";
import { until } from "./until.ts";

export type { Fault } from "./sink-faults.ts";
export type { Arrival, Attempt } from "./sink-log.ts";

/** A stand-in for a broker: a process of its own that logs what arrives and misbehaves as ordered. */
export type Sink = AsyncDisposable & {
  readonly port: number;
  readonly url: string;
  readonly logFile: string;
  /** What took effect, in the order of arrival, over all restarts. */
  arrivals(): Promise<Arrival[]>;
  /** Everything that reached the sink, including what it rejected or left hanging. */
  attempts(): Promise<Attempt[]>;
  /** Waits for so many arrivals, or until the predicate likes them, and returns them all. */
  waitFor(wanted: number | ((arrivals: Arrival[]) => boolean), timeoutMs?: number): Promise<Arrival[]>;
  /** In force when the promise resolves; needs a running, unpaused sink. Faults end with the process. */
  order(fault: Fault): Promise<void>;
  clearFaults(): Promise<void>;
  kill(): Promise<void>;
  /** Starts again on the same port and log, after a kill if it still runs. */
  restart(): Promise<void>;
  pause(): Promise<void>;
  resume(): void;
};

export async function startSink(): Promise<Sink> {
  const sink = new SinkServer(createScratch("sink", "memory"), await freePort());
  try {
    await sink.restart();
    return sink;
  } catch (error) {
    await sink[Symbol.asyncDispose]();
    throw error;
  }
}

class SinkServer implements Sink {
  readonly port: number;
  readonly url: string;
  readonly logFile: string;
  readonly #scratch: Scratch;
  readonly #readLog: () => Attempt[];
  readonly #attempts: Attempt[] = [];
  readonly #arrivals: Attempt[] = [];
  readonly #done = new Set<number>();
  #child: ChildProcess | undefined;
  #lastSeq = 0;

  constructor(scratch: Scratch, port: number) {
    this.port = port;
    this.url = `sink://127.0.0.1:${port}`;
    this.logFile = join(scratch.path, "arrivals.log");
    this.#scratch = scratch;
    this.#readLog = createLogReader(this.logFile);
  }

  async restart(): Promise<void> {
    await this.kill();
    const errors = openSync(join(this.#scratch.path, "errors.log"), "a");
    const child = fork(join(import.meta.dirname, "sink-process.ts"), [String(this.port), this.logFile], {
      execArgv: [],
      serialization: "advanced", // carries the regular expressions of faults
      stdio: ["ignore", errors, errors, "ipc"],
    });
    closeSync(errors);
    this.#child = child;
    child.on("message", ({ done }: { done: number }) => this.#done.add(done));
    await this.#confirmed(0);
  }

  async #confirmed(seq: number): Promise<void> {
    await until("the sink confirms", () => {
      if (!this.#running()) throw new Error(`the sink has ended:\n${this.#errors()}`);
      return this.#done.delete(seq);
    });
  }

  #running(): ChildProcess | undefined {
    const child = this.#child;
    return child?.exitCode === null && child.signalCode === null ? child : undefined;
  }

  #errors(): string {
    return readFileSync(join(this.#scratch.path, "errors.log"), "utf8").slice(-4_000);
  }

  order(fault: Fault): Promise<void> {
    return this.#tell(fault);
  }

  clearFaults(): Promise<void> {
    return this.#tell("clear");
  }

  async #tell(order: Fault | "clear"): Promise<void> {
    this.#lastSeq += 1;
    const message: SinkOrder = { seq: this.#lastSeq, order };
    this.#running()?.send(message);
    await this.#confirmed(message.seq);
  }

  async attempts(): Promise<Attempt[]> {
    this.#refresh();
    return [...this.#attempts];
  }

  async arrivals(): Promise<Arrival[]> {
    this.#refresh();
    return [...this.#arrivals];
  }

  #refresh(): void {
    for (const attempt of this.#readLog()) {
      this.#attempts.push(attempt);
      if (attempt.taken) this.#arrivals.push(attempt);
    }
  }

  async waitFor(wanted: number | ((arrivals: Arrival[]) => boolean), timeoutMs?: number): Promise<Arrival[]> {
    const enough = typeof wanted === "number" ? () => this.#arrivals.length >= wanted : wanted;
    const what = typeof wanted === "number" ? `${wanted} arrivals at the sink` : "the wanted arrivals at the sink";
    const condition = () => {
      this.#refresh();
      return enough(this.#arrivals);
    };
    await until(what, condition, timeoutMs).catch((error: Error) => {
      throw new Error(`${error.message}; there are ${this.#arrivals.length}`);
    });
    return [...this.#arrivals];
  }

  async kill(): Promise<void> {
    const child = this.#running();
    if (!child) return;
    const exit = once(child, "exit");
    child.kill("SIGKILL");
    await exit;
  }

  async pause(): Promise<void> {
    const child = this.#running();
    child?.kill("SIGSTOP");
    await until("the sink is stopped", () => child?.pid === undefined || isStopped(child.pid));
  }

  resume(): void {
    this.#running()?.kill("SIGCONT");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
    await this.#scratch.remove();
  }
}
