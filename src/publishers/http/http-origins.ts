import { buildConnector, Pool } from "undici";
import type { HttpSettings } from "./http-config.ts";
import { guardedLookup } from "./http-guard.ts";
import { passOverContinue } from "./http-interim.ts";

/** Hosts with open connections. Beyond that the one that was idle for longest makes room. */
const ORIGINS_MAX = 128;
/** Shorter than the patience of usual servers, so that a request seldom meets a connection that is being closed. */
const KEEP_ALIVE_MS = 4_000;

/** Somebody who waits until a request may go to a host. */
interface Waiter {
  /** Called once: true when it may send and has to release afterwards. */
  readonly resolve: (isAdmitted: boolean) => void;
  readonly signal: AbortSignal;
}

/** One host with its connections, and the limit of requests to it at a time. */
export class Origin {
  readonly pool: Pool;
  readonly #limit: number;
  readonly #waiting: Waiter[] = [];
  #active = 0;

  constructor(pool: Pool, limit: number) {
    this.pool = pool;
    this.#limit = limit;
  }

  get isIdle(): boolean {
    return this.#active === 0;
  }

  /** False when the signal aborted before it was this one's turn. */
  admit(signal: AbortSignal): boolean | Promise<boolean> {
    if (signal.aborted) return false;
    if (this.#active < this.#limit) {
      this.#active += 1;
      return true;
    }
    return new Promise((resolve) => this.#waiting.push({ resolve, signal }));
  }

  release(): void {
    this.#active -= 1;
    this.#letIn();
  }

  /** To be called when a signal has aborted: tells those who waited with it. */
  dismiss(): void {
    const left = this.#waiting.filter(({ resolve, signal }) => {
      if (signal.aborted) resolve(false);
      return !signal.aborted;
    });
    this.#waiting.splice(0, this.#waiting.length, ...left);
    this.#letIn();
  }

  #letIn(): void {
    while (this.#active < this.#limit) {
      const next = this.#waiting.shift();
      if (next === undefined) return;
      if (next.signal.aborted) next.resolve(false);
      else {
        this.#active += 1;
        next.resolve(true);
      }
    }
  }
}

/** The hosts that are talked to. Connections are made when they are needed and kept while they are in use. */
export class Origins {
  readonly #settings: HttpSettings;
  /** The one used last is the last. */
  readonly #open = new Map<string, Origin>();
  readonly #closing = new Set<Promise<void>>();

  constructor(settings: HttpSettings) {
    this.#settings = settings;
  }

  of(origin: string): Origin {
    const known = this.#open.get(origin);
    if (known !== undefined && this.#open.size === 1) return known;
    const found = known ?? new Origin(this.#newPool(origin), this.#settings.concurrency);
    this.#open.delete(origin);
    this.#open.set(origin, found);
    if (this.#open.size > ORIGINS_MAX) this.#dropOne();
    return found;
  }

  /** Tells everybody whose signal has aborted while waiting for a turn. */
  dismiss(): void {
    for (const origin of this.#open.values()) origin.dismiss();
  }

  async close(): Promise<void> {
    const open = [...this.#open.values()];
    this.#open.clear();
    await Promise.all([...this.#closing, ...open.map(({ pool }) => pool.destroy())]);
  }

  /** Only an idle one: a limit that is in use must not be forgotten. Requests are bounded, so one becomes idle. */
  #dropOne(): void {
    for (const [name, origin] of this.#open) {
      if (!origin.isIdle) continue;
      this.#open.delete(name);
      const closing = origin.pool.destroy().finally(() => this.#closing.delete(closing));
      this.#closing.add(closing);
      return;
    }
  }

  #newPool(origin: string): Pool {
    const { allowPrivate, concurrency, lookup, requestTimeoutMs, target, tls } = this.#settings;
    const isGuarded = target.origin === null;
    const found = isGuarded ? guardedLookup(allowPrivate, lookup) : lookup;
    return new Pool(origin, {
      connections: concurrency,
      pipelining: 1,
      // Aborting a request must end its connection, so none may carry others.
      allowH2: false,
      keepAliveTimeout: KEEP_ALIVE_MS,
      // Our own clock watches over each request as a whole.
      headersTimeout: 0,
      bodyTimeout: 0,
      connect: connector({ ...tls, timeout: requestTimeoutMs, ...(found === null ? {} : { lookup: found }) }),
    });
  }
}

function connector(options: buildConnector.BuildOptions): buildConnector.connector {
  const connect = buildConnector({ ...options, allowH2: false });
  return (place, callback) => {
    connect(place, (...[error, socket]) => {
      if (error !== null) callback(error, null);
      else callback(null, passOverContinue(socket));
    });
  };
}
