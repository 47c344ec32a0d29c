const EXIT_CODES = { SIGINT: 130, SIGTERM: 143 } as const;
type EndSignal = keyof typeof EXIT_CODES;
const END_SIGNALS = Object.keys(EXIT_CODES) as EndSignal[];

const PARENT_POLL_MS = 500;

/** The first SIGTERM or SIGINT asks for a shutdown, the second forces it. SIGHUP asks for a reload of the settings. */
export class Signals {
  readonly #end = Promise.withResolvers<EndSignal>();
  readonly #listener = (signal: EndSignal) => this.#ended(signal);
  readonly #hangUp = () => this.#hungUp();
  readonly #parentWatch: NodeJS.Timeout | null;
  #waiting: PromiseWithResolvers<"SIGHUP"> | null = null;
  #isReloadDue = false;
  #isEnding = false;

  constructor() {
    for (const signal of END_SIGNALS) process.on(signal, this.#listener);
    process.on("SIGHUP", this.#hangUp);
    this.#parentWatch = isRunByNpm() ? this.#watchParent() : null;
  }

  /** Resolves with the first SIGTERM or SIGINT. */
  get toEnd(): Promise<EndSignal> {
    return this.#end.promise;
  }

  /** A SIGHUP that arrived before this call counts too: the caller may have read the settings before it. */
  nextReload(): Promise<"SIGHUP"> {
    this.#waiting ??= Promise.withResolvers();
    const { promise } = this.#waiting;
    if (this.#isReloadDue) this.#hungUp();
    return promise;
  }

  stop(): void {
    for (const signal of END_SIGNALS) process.off(signal, this.#listener);
    process.off("SIGHUP", this.#hangUp);
    if (this.#parentWatch !== null) clearInterval(this.#parentWatch);
  }

  /**
   * npm runs the command in a shell, and a signal to npm ends that shell without reaching this process. Nothing would
   * stop the orphan, so the end of the shell counts as SIGTERM.
   */
  #watchParent(): NodeJS.Timeout {
    const parent = process.ppid;
    const timer = setInterval(() => {
      if (process.ppid === parent) return;
      clearInterval(timer);
      this.#ended("SIGTERM");
    }, PARENT_POLL_MS);
    return timer.unref();
  }

  #hungUp(): void {
    this.#isReloadDue = this.#waiting === null;
    this.#waiting?.resolve("SIGHUP");
    this.#waiting = null;
  }

  #ended(signal: EndSignal): void {
    if (this.#isEnding) process.exit(EXIT_CODES[signal]);
    this.#isEnding = true;
    this.#end.resolve(signal);
  }
}

function isRunByNpm(): boolean {
  return process.env.npm_command !== undefined;
}

/**
 * Stops waiting shortly before the time is up. Unfinished work is safe: another instance recovers it as after a crash.
 */
export async function withinShutdownTime(ms: number, work: () => Promise<void>): Promise<void> {
  const { promise: over, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, ms * 0.95);
  await Promise.race([work(), over]);
  clearTimeout(timer);
}
