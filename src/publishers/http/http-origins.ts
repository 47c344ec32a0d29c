import type { Socket } from "node:net";
import { buildConnector, Pool } from "undici";
import type { HttpSettings } from "./http-config.ts";
import { guardedLookup } from "./http-guard.ts";

/** The maximum number of hosts with open connections. Beyond it the least recently used idle host is closed. */
const ORIGINS_MAX = 128;
/**
 * Shorter than the keep-alive timeout of common servers, so that a request rarely uses a connection that is being
 * closed.
 */
const KEEP_ALIVE_MS = 4_000;

/** A request that waits for its host's limit. */
interface Waiter {
  /** Called once. True: it may send, and must call `release` afterwards. */
  readonly resolve: (isAdmitted: boolean) => void;
  readonly signal: AbortSignal;
}

/** One host with its connections and its limit of concurrent requests. */
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

  /** Waits for a free slot. False when the signal aborted first. */
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
    this.#admitNext();
  }

  /** Call it after an abort: resolves the waiting requests whose signal has aborted. */
  dismissAborted(): void {
    const left = this.#waiting.filter(({ resolve, signal }) => {
      if (signal.aborted) resolve(false);
      return !signal.aborted;
    });
    this.#waiting.splice(0, this.#waiting.length, ...left);
    this.#admitNext();
  }

  #admitNext(): void {
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

/** The hosts with their connections. Connections are opened on demand and kept alive while they are used. */
export class Origins {
  readonly #settings: HttpSettings;
  /** Ordered by last use, the latest at the end. */
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

  /** Resolves all waiting requests whose signal has aborted. */
  dismissAborted(): void {
    for (const origin of this.#open.values()) origin.dismissAborted();
  }

  async close(): Promise<void> {
    const open = [...this.#open.values()];
    this.#open.clear();
    await Promise.all([...this.#closing, ...open.map(({ pool }) => pool.destroy())]);
  }

  /**
   * Closes only an idle host, or its count of active requests would be lost. Requests are bounded, so one becomes idle.
   */
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
    const { concurrency } = this.#settings;
    return new Pool(origin, {
      connections: concurrency,
      pipelining: 1,
      // Aborting a request must close its connection, so a connection must not carry other requests.
      allowH2: false,
      keepAliveTimeout: KEEP_ALIVE_MS,
      // The exchange has its own timeout for the whole request.
      headersTimeout: 0,
      bodyTimeout: 0,
      connect: connector(this.#settings),
    });
  }
}

function connector(settings: HttpSettings): buildConnector.connector {
  const connect = plainConnector(settings);
  return (place, callback) => {
    connect(place, (...[error, socket]) => {
      if (error !== null) callback(error, null);
      else callback(null, passOverContinue(socket));
    });
  };
}

function plainConnector({ allowPrivate, lookup, requestTimeoutMs, target, tls }: HttpSettings) {
  const isGuarded = target.origin === null;
  const found = isGuarded ? guardedLookup(allowPrivate, lookup) : lookup;
  const options = { ...tls, timeout: requestTimeoutMs, ...(found === null ? {} : { lookup: found }) };
  return buildConnector({ ...options, allowH2: false });
}

/** Opens a connection as for a request, without sending anything. */
export function connectTo(settings: HttpSettings, { host, hostname, port, protocol }: URL): Promise<Socket> {
  return new Promise((resolve, reject) => {
    plainConnector(settings)({ host, hostname, port, protocol }, (...[error, socket]) => {
      if (error === null) resolve(socket);
      else reject(error);
    });
  });
}

const STATUS_LINE = Buffer.from("HTTP/1.");
const CONTINUE = " 100";
/** `HTTP/1.1 100` without its last digit: how much of it may be in the previous chunk. */
const CUT_MAX = "HTTP/1.1 10".length;
const TWO = 0x32;

/**
 * A server may send `100 Continue` before its response, and some always do, but the client closes the connection unless
 * it has requested it. The client ignores other statuses below 200. So this changes the last digit of incoming data:
 * `102 Processing` means the same, that the response will follow. A changed body does no harm, because bodies are not
 * used.
 */
function passOverContinue<Connection extends Socket>(socket: Connection): Connection {
  const read = socket.read.bind(socket) as (size?: number) => unknown;
  let before: Buffer = Buffer.alloc(0);
  socket.read = (size?: number) => {
    const piece = read(size);
    if (!Buffer.isBuffer(piece)) return piece;
    const seen = Buffer.concat([before, piece]);
    for (const at of continuesIn(seen)) {
      // A status that was complete in the previous chunk is already changed.
      const digit = at - before.length;
      if (digit >= 0) piece[digit] = TWO;
    }
    before = Buffer.from(seen.subarray(-CUT_MAX));
    return piece;
  };
  return socket;
}

/** The positions of the last digit of each `HTTP/1.x 100`. */
function continuesIn(bytes: Buffer): number[] {
  const found: number[] = [];
  for (let at = bytes.indexOf(STATUS_LINE); at >= 0; at = bytes.indexOf(STATUS_LINE, at + 1)) {
    const code = at + STATUS_LINE.length + 1;
    if (bytes.toString("latin1", code, code + CONTINUE.length) === CONTINUE) found.push(code + CONTINUE.length - 1);
  }
  return found;
}
