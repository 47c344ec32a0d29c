import type { KurrentDBClient } from "@kurrent/kurrentdb-client";
import { RelayError } from "../../core/errors.ts";
import type { KurrentDbAddress } from "./kurrentdb-address.ts";
import { isKnownKind, isTransient } from "./kurrentdb-errors.ts";

export type KurrentDbModule = typeof import("@kurrent/kurrentdb-client");

const INSTALL = "npm install @kurrent/kurrentdb-client@1.3.1";

let loading: Promise<KurrentDbModule> | undefined;

/** The client is an optional peer dependency: without it the error says what to install. */
export function loadKurrentDb(): Promise<KurrentDbModule> {
  loading ??= import("@kurrent/kurrentdb-client").catch((cause: unknown) => {
    throw new RelayError("CONFIG_INVALID", `the KurrentDB client is missing, install it: ${INSTALL}.`, { cause });
  });
  return loading;
}

/**
 * The web server inside KurrentDB takes 100 calls on a connection and lets further ones wait without a word, and a
 * subscription is a call that never ends. The rest is for reads and appends.
 */
const SUBSCRIPTIONS_PER_CLIENT = 80;
const RENEWAL_PAUSE_MS = 1_000;

interface Shared {
  readonly client: KurrentDBClient;
  subscriptions: number;
}

/** One client for reads and appends, and as many for subscriptions as their number needs: one for the first 80. */
export class KurrentDbClients {
  readonly #address: KurrentDbAddress;
  readonly #shared: Shared[] = [];
  readonly #hasRead = new WeakSet<KurrentDBClient>();
  #commands: KurrentDBClient | undefined;
  #renewedMs = Number.NEGATIVE_INFINITY;

  constructor(address: KurrentDbAddress) {
    this.#address = address;
  }

  async forCommands(): Promise<KurrentDBClient> {
    const module = await loadKurrentDb();
    this.#commands ??= this.#open(module, this.#address.connectionString);
    return this.#commands;
  }

  noteRead(client: KurrentDBClient): void {
    this.#hasRead.add(client);
  }

  /**
   * A client whose first read found no server finds none ever after, and one that was told something strange may
   * remember it for good. All others come back by themselves.
   */
  noteFailure(client: KurrentDBClient, error: unknown): void {
    const isGood = isTransient(error) ? this.#hasRead.has(client) : isKnownKind(error);
    const nowMs = performance.now();
    if (isGood || this.#commands !== client || nowMs - this.#renewedMs < RENEWAL_PAUSE_MS) return;
    this.#renewedMs = nowMs;
    this.#commands = undefined;
    void client.dispose();
  }

  async forSubscription(): Promise<{ readonly client: KurrentDBClient; readonly release: () => void }> {
    const module = await loadKurrentDb();
    let shared = this.#shared.find(({ subscriptions }) => subscriptions < SUBSCRIPTIONS_PER_CLIENT);
    if (shared === undefined) {
      // Clients with the same settings share a connection, whatever they are told.
      const { connectionString, keepAliveTimeoutMs } = this.#address;
      const own = `&keepAliveTimeout=${keepAliveTimeoutMs + this.#shared.length}`;
      shared = { client: this.#open(module, connectionString + own), subscriptions: 0 };
      this.#shared.push(shared);
    }
    const taken = shared;
    taken.subscriptions += 1;
    return {
      client: taken.client,
      release: () => {
        taken.subscriptions -= 1;
      },
    };
  }

  async close(): Promise<void> {
    const clients = this.#shared.splice(0).map(({ client }) => client);
    if (this.#commands !== undefined) clients.push(this.#commands);
    this.#commands = undefined;
    await Promise.all(clients.map((client) => client.dispose()));
  }

  #open({ KurrentDBClient }: KurrentDbModule, connectionString: string): KurrentDBClient {
    try {
      return KurrentDBClient.connectionString(connectionString);
    } catch {
      // No cause: the client's error quotes the string with the password in it.
      throw new RelayError(
        "CONFIG_INVALID",
        `The client cannot open ${this.#address.shown}: an option of the address has a wrong value, or a file that it names cannot be read.`,
      );
    }
  }
}
