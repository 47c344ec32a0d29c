import type { BaseOptions, KurrentDBClient, ResolvedEvent } from "@kurrent/kurrentdb-client";
import { Semaphore } from "../../core/semaphore.ts";
import type { EventLog, LoggedEvent, LogItem, NewLoggedEvent, Subscription } from "../../ports/event-log.ts";
import { type KurrentDbAddress, type KurrentDbCredentials, kurrentdbAddress } from "./kurrentdb-address.ts";
import { KurrentDbClients, loadKurrentDb } from "./kurrentdb-client.ts";
import { isMissingStream, logError } from "./kurrentdb-errors.ts";
import { loggedEvent, newEvent } from "./kurrentdb-events.ts";
import { type KurrentDbWay, readsAll, readsCategory } from "./kurrentdb-streams.ts";
import { pagesOf } from "./kurrentdb-subscription.ts";

/** Options of `kurrentdbLog`. */
export interface KurrentDbLogOptions {
  /** `kurrentdb://host:2113?tls=false`, or with the former name `esdb://`. */
  readonly url: string;
  /** How to read requests: `all` needs the right to read `$all`, `category` a running projection. Default: all. */
  readonly way?: KurrentDbWay;
  /** Instead of those in the address. */
  readonly credentials?: KurrentDbCredentials;
  /** How long to wait for a response. Default: 10,000. */
  readonly requestTimeoutMs?: number;
}

/**
 * More than 15 at once can make the client wait for its connection. If that connection breaks meanwhile, the client
 * ends the process with a rejection that no caller can catch.
 */
const APPENDS_MAX = 8;
const PING_STREAM = "outbox-relay.ping";
const NEVER = new AbortController().signal;

/** Requests stored in KurrentDB. It connects at the first use. Throws CONFIG_INVALID. */
export function kurrentdbLog(options: KurrentDbLogOptions): EventLog {
  return new KurrentDbLog(options);
}

class KurrentDbLog implements EventLog {
  readonly #way: KurrentDbWay;
  readonly #requestTimeoutMs: number;
  readonly #address: KurrentDbAddress;
  readonly #clients: KurrentDbClients;
  readonly #appends = new Semaphore(APPENDS_MAX);
  readonly #closing = new AbortController();
  readonly #readOptions: BaseOptions;

  constructor({ credentials, requestTimeoutMs = 10_000, url, way = "all" }: KurrentDbLogOptions) {
    this.#way = way;
    this.#requestTimeoutMs = requestTimeoutMs;
    this.#address = kurrentdbAddress(url, credentials);
    this.#clients = new KurrentDbClients(this.#address);
    // A follower may not have received an acknowledged event yet.
    const { credentials: used } = this.#address;
    this.#readOptions = { requiresLeader: true, ...(used === null ? {} : { credentials: used }) };
  }

  async *subscribe(subscription: Subscription): AsyncGenerator<readonly LogItem[]> {
    const { from, pageMax, streamPrefix } = subscription;
    const doing = `The subscription to ${streamPrefix}`;
    const module = await loadKurrentDb();
    const { checkPosition, endOf, open } = this.#way === "all" ? readsAll(module) : readsCategory(module);
    const signal = AbortSignal.any([subscription.signal, this.#closing.signal]);
    try {
      if (typeof from !== "string")
        await this.#read(doing, (client, read) => checkPosition(client, subscription, read));
      const isNow = from === "now";
      const end = isNow ? await this.#read(doing, (client, read) => endOf(client, subscription, read)) : "";
      if (signal.aborted) return;
      // Report the position at once: a reader that stops before the server reports one would resume after the events
      // that arrive meanwhile.
      if (isNow) yield [{ kind: "passed", position: end }];
      const { client, release } = await this.#clients.forSubscription();
      try {
        const opened = open(client, isNow ? { ...subscription, from: { after: end } } : subscription);
        yield* pagesOf({ ...opened, pageMax, signal, confirmMsMax: this.#requestTimeoutMs });
      } finally {
        release();
      }
    } catch (error) {
      throw logError(this.#address, doing, error);
    }
  }

  read(stream: string, from: bigint, max: number): Promise<readonly LoggedEvent[]> {
    return this.#read(`Reading ${stream}`, (client, read) =>
      eventsOf(client.readStream(stream, { ...read, fromRevision: from, maxCount: max })),
    );
  }

  readLast(stream: string): Promise<LoggedEvent | null> {
    return this.#read(`Reading ${stream}`, async (client, read) => {
      const { BACKWARDS, END } = await loadKurrentDb();
      const options = { ...read, direction: BACKWARDS, fromRevision: END, maxCount: 1 } as const;
      return (await eventsOf(client.readStream(stream, options)))[0] ?? null;
    });
  }

  async append(stream: string, last: bigint | null, events: readonly NewLoggedEvent[]): Promise<bigint> {
    const { NO_STREAM } = await loadKurrentDb();
    await this.#appends.acquire(NEVER);
    try {
      return await this.#command(`Appending to ${stream}`, async (client) => {
        const streamState = last ?? NO_STREAM;
        const { nextExpectedRevision } = await client.appendToStream(stream, events.map(newEvent), { streamState });
        return nextExpectedRevision;
      });
    } finally {
      this.#appends.release();
    }
  }

  async ping(): Promise<void> {
    await this.readLast(PING_STREAM);
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#clients.close();
  }

  #read<T>(doing: string, run: (client: KurrentDBClient, read: BaseOptions) => Promise<T>): Promise<T> {
    return this.#command(doing, async (client) => {
      const result = await run(client, this.#readOptions);
      this.#clients.noteRead(client);
      return result;
    });
  }

  async #command<T>(doing: string, run: (client: KurrentDBClient) => Promise<T>): Promise<T> {
    const client = await this.#clients.forCommands();
    try {
      return await within(this.#requestTimeoutMs, run(client));
    } catch (error) {
      this.#clients.noteFailure(client, error);
      throw logError(this.#address, doing, error);
    }
  }
}

async function eventsOf(read: AsyncIterable<ResolvedEvent>): Promise<LoggedEvent[]> {
  const events: LoggedEvent[] = [];
  try {
    for await (const { event } of read) if (event !== undefined) events.push(loggedEvent(event));
  } catch (error) {
    if (!isMissingStream(error)) throw error;
  }
  return events;
}

/** Limits the wait: the client itself waits forever for a frozen server. */
async function within<T>(msMax: number, answer: Promise<T>): Promise<T> {
  const { promise: silence, reject } = Promise.withResolvers<never>();
  const error = Object.assign(new Error(`no response within ${msMax} ms`), { type: "deadline-exceeded" });
  const timer = setTimeout(() => reject(error), msMax);
  try {
    return await Promise.race([answer, silence]);
  } finally {
    clearTimeout(timer);
  }
}
