import type { KurrentDBClient } from "@kurrent/kurrentdb-client";
import { RelayError } from "../../core/errors.ts";
import { optionalClient } from "../../core/optional-client.ts";
import type { KurrentDbAddress } from "./kurrentdb-address.ts";
import { isKnownKind, isTransient } from "./kurrentdb-errors.ts";

/** The client's module; it is loaded only when needed. */
export type KurrentDbModule = typeof import("@kurrent/kurrentdb-client");

export const loadKurrentDb: () => Promise<KurrentDbModule> = optionalClient(
  "the KurrentDB client",
  "@kurrent/kurrentdb-client@1",
  () => import("@kurrent/kurrentdb-client"),
);

/**
 * The web server inside KurrentDB accepts 100 calls per connection and queues further ones silently, and a subscription
 * is a call that never ends. The rest is for reads and appends.
 */
const SUBSCRIPTIONS_PER_CLIENT = 80;
const RENEWAL_PAUSE_MS = 1_000;

interface Shared {
  readonly client: KurrentDBClient;
  subscriptions: number;
}

/** One client for reads and appends, and one for every 80 subscriptions. */
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

  /** Notes that the client has reached the server. */
  noteRead(client: KurrentDBClient): void {
    this.#hasRead.add(client);
  }

  /**
   * Replaces a client that cannot recover. A client whose first read found no server never finds one, and one that
   * received an unexpected response may remember it forever. All others reconnect by themselves.
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
      // Clients with equal settings share one connection, so make the settings differ.
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
        `The client cannot open ${this.#address.shown}: an option in the address has an invalid value, or a file that it names cannot be read.`,
      );
    }
  }
}
