import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { run } from "node:test";
import { inspect } from "node:util";
import { GroupResults, type ResultOptions, type TestEvent } from "./file-result.ts";

const ENTRY = resolve(import.meta.dirname, "group.ts");
/** Longer than the longest wait: what waits in vain says for what. */
const TEST_TIMEOUT_MS = 480_000;
/**
 * A process that stays after its last test, and has nothing to do, has left something open. Exiting by force would hide
 * that. What does not count is the time that it works, or waits for a core on a busy machine.
 */
const LEAK_TIMEOUT_MS = 30_000;
/** After the process has ended, its last events may still be on their way. */
const REPORT_TIMEOUT_MS = 10_000;
/** Behind the timeout of each test, for what no timer inside the process can end, such as an endless loop. */
const SILENCE_TIMEOUT_MS = 900_000;
const OUTPUT_CHARS_MAX = 20_000;

/** Test files that run in one process, one after another. */
export class Group {
  readonly files: readonly string[];
  readonly results: GroupResults;
  readonly #startedMs = performance.now();
  #lastSignMs = performance.now();
  #lastAliveMs = performance.now();
  /** At the last sign of life that the watch has seen. */
  #seen = { signMs: 0, busyMs: 0 };
  #output = "";

  constructor(files: readonly string[], options: ResultOptions) {
    this.files = files;
    this.results = new GroupResults(files, options);
  }

  get elapsedMs(): number {
    return performance.now() - this.#startedMs;
  }

  /** The end of what the process printed. */
  get output(): string {
    return this.#output.trim();
  }

  /** The process writes the CPU time it used to this file. */
  async run(usageFile: string): Promise<void> {
    const abort = new AbortController();
    const stream = run({
      files: [ENTRY],
      argv: [usageFile, ...this.files],
      isolation: "process",
      timeout: TEST_TIMEOUT_MS,
      signal: abort.signal,
    });
    const watch = setInterval(() => {
      const reason = this.#stuckReason();
      if (reason === undefined) return;
      clearInterval(watch);
      this.results.failProcess("the process does not end as it should", reason);
      killChild(this.files[0] ?? ENTRY);
      abort.abort();
    }, 1_000);
    this.#listen(stream);
    // Without a reader the stream would never end.
    for await (const _ of stream);
    clearInterval(watch);
    this.results.failUnfinished();
  }

  #listen(stream: NodeJS.EventEmitter): void {
    const on = (type: string, listener: (event: TestEvent) => void): void => {
      stream.on(type, (event: TestEvent) => {
        this.#lastSignMs = performance.now();
        // The runner reports the process itself only if it ended badly without a failed test, or held no test.
        const isProcess = event.name === ENTRY && event.nesting === 0;
        if (!isProcess) listener(event);
        else if (type === "test:fail") this.#failCrash(event);
      });
    };
    on("test:enqueue", (event) => this.results.enqueue(event));
    on("test:dequeue", (event) => this.results.start(event));
    on("test:complete", (event) => this.results.complete(event));
    on("test:pass", (event) => this.results.pass(event));
    on("test:fail", (event) => this.results.fail(event));
    const print = ({ message }: { message: string }): void => {
      this.#output = (this.#output + message).slice(-OUTPUT_CHARS_MAX);
    };
    stream.on("test:stdout", print);
    stream.on("test:stderr", print);
    // An error after the last test is only reported here. The runner's own totals name no file.
    stream.on("test:diagnostic", ({ message, file }: { message: string; file?: string }) => {
      if (file !== undefined) print({ message: `${message}\n` });
    });
  }

  #failCrash(event: TestEvent): void {
    if ([...this.results.files.values()].some(({ failures }) => failures.length > 0)) return;
    const error = event.details?.error as (Error & { exitCode?: number; signal?: string }) | undefined;
    const isHook = error?.signal === undefined && error?.exitCode === undefined;
    const end = error?.signal ? `by ${error.signal}` : `with exit code ${error?.exitCode}`;
    this.results.failProcess(
      isHook ? "a hook of the file failed" : "the process crashed",
      isHook ? inspect(error?.cause ?? error) : `the test process ended ${end}`,
    );
  }

  #stuckReason(): string | undefined {
    const silentMs = performance.now() - this.#lastSignMs;
    if (this.results.haveAllEnded && silentMs - this.#busySinceSignMs() > LEAK_TIMEOUT_MS) {
      return `all tests of ${this.files.join(", ")} have ended, but a server, socket, timer or child process is left open`;
    }
    if (childrenFor(this.files[0] ?? ENTRY).length > 0) this.#lastAliveMs = performance.now();
    else if (Math.min(silentMs, performance.now() - this.#lastAliveMs) > REPORT_TIMEOUT_MS) {
      return `it ended without a report of ${this.files.join(", ")}; a hook may have failed`;
    }
    if (silentMs > SILENCE_TIMEOUT_MS) return `no sign of life for ${SILENCE_TIMEOUT_MS / 1000} s`;
    return undefined;
  }

  #busySinceSignMs(): number {
    const [pid] = childrenFor(this.files[0] ?? ENTRY);
    if (pid === undefined) return 0;
    const busyMs = busyMsOf(pid);
    if (this.#seen.signMs !== this.#lastSignMs) this.#seen = { signMs: this.#lastSignMs, busyMs };
    return busyMs - this.#seen.busyMs;
  }
}

/** By hand, because the abort signal sends only a SIGTERM, which a test may have a handler for. */
function killChild(file: string): void {
  for (const pid of childrenFor(file)) {
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // it has ended in the meantime
    }
  }
}

/** The processes of this one that run the file. */
function childrenFor(file: string): readonly number[] {
  const children = readFileSync(`/proc/${process.pid}/task/${process.pid}/children`, "utf8").trim().split(" ");
  return children.map(Number).filter((pid) => pid > 0 && isRunning(pid, file));
}

/** How long its main thread has run, or has waited for a core. */
function busyMsOf(pid: number): number {
  try {
    const [ranNs = 0, waitedNs = 0] = readFileSync(`/proc/${pid}/schedstat`, "utf8").split(" ").map(Number);
    return (ranNs + waitedNs) / 1e6;
  } catch {
    return 0; // it has ended in the meantime, or this kernel does not count
  }
}

function isRunning(pid: number, file: string): boolean {
  try {
    const words = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
    return words.includes(ENTRY) && words.includes(file);
  } catch {
    return false; // it has ended in the meantime
  }
}
