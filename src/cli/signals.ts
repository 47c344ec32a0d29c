const EXIT_CODES = { SIGINT: 130, SIGTERM: 143 } as const;
type EndSignal = keyof typeof EXIT_CODES;
const END_SIGNALS = Object.keys(EXIT_CODES) as EndSignal[];

const PARENT_LOOK_MS = 500;

/** SIGTERM and SIGINT: the first one is a wish, the second an order. SIGHUP asks for the settings to be read again. */
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

  get toEnd(): Promise<EndSignal> {
    return this.#end.promise;
  }

  /** One that came while nobody waited counts too: whoever was busy may have read the settings before it. */
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
   * npm puts a shell between itself and the command, and a signal to npm ends that shell without reaching us. Nobody
   * would be left to stop an orphan, so the end of the shell counts as the signal.
   */
  #watchParent(): NodeJS.Timeout {
    const parent = process.ppid;
    const timer = setInterval(() => {
      if (process.ppid === parent) return;
      clearInterval(timer);
      this.#ended("SIGTERM");
    }, PARENT_LOOK_MS);
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
