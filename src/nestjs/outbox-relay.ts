import type { Relay } from "../relay/relay.ts";

/** A relay for this process, as `createRelay` creates it, and what to close after it has stopped. */
export interface RelayInProcess {
  readonly relay: Relay;
  readonly close?: () => Promise<unknown>;
}

/** Makes the relay of this process. */
export type MakeRelay = () => RelayInProcess | Promise<RelayInProcess>;

/**
 * Runs the relay as long as the application. Nest calls the hooks: the relay starts after all modules are initialized,
 * and stops after the HTTP server has answered its last request, so that the events of that request are delivered too.
 */
export class OutboxRelay {
  readonly #make: MakeRelay | undefined;
  readonly #drainMs: number;
  /** Current problems by subject. */
  readonly #problems = new Map<string, string>();
  /** Destinations and topics with an open circuit; restarting this process would not help. */
  readonly #closed = new Map<string, string>();
  #running: RelayInProcess | null = null;

  constructor(make: MakeRelay | undefined, drainMs: number) {
    this.#make = make;
    this.#drainMs = drainMs;
    if (make !== undefined) this.#problems.set(RELAY, "it has not started yet");
  }

  /** The relay itself, for its technical events; null before the start, and where this process only writes. */
  get relay(): Relay | null {
    return this.#running?.relay ?? null;
  }

  get isInProcess(): boolean {
    return this.#make !== undefined;
  }

  get problems(): ReadonlyMap<string, string> {
    return this.#problems;
  }

  get closedDestinations(): ReadonlyMap<string, string> {
    return this.#closed;
  }

  async onApplicationBootstrap(): Promise<void> {
    if (this.#make === undefined) return;
    this.#running = await this.#make();
    this.#problems.set(RELAY, "it has not read its source yet");
    this.#watch(this.#running.relay);
    await this.#running.relay.start().catch(async (error: unknown) => {
      await this.#end();
      throw error;
    });
  }

  async onApplicationShutdown(): Promise<void> {
    if (this.#running === null) return;
    this.#problems.set(RELAY, "it is stopping");
    if (this.#drainMs > 0) await settledWithin(this.#running.relay.drain(), this.#drainMs);
    await this.#end();
  }

  async #end(): Promise<void> {
    const running = this.#running;
    this.#running = null;
    this.#problems.set(RELAY, "it has stopped");
    await running?.relay.stop();
    await running?.close?.();
  }

  #watch(relay: Relay): void {
    relay.on("RunEnded", () => this.#isReading());
    relay.on("SourceRecovered", ({ pipeline }) => this.#problems.delete(pipeline));
    relay.on("SourceBroken", ({ pipeline, reason }) => this.#problems.set(pipeline, reason));
    relay.on("InstanceLost", ({ reason }) => this.#problems.set(RELAY, reason));
    relay.on("CircuitOpened", ({ destination, topic, reason }) =>
      this.#closed.set(placeOf(destination, topic), reason),
    );
    relay.on("CircuitClosed", ({ destination, topic }) => this.#closed.delete(placeOf(destination, topic)));
  }

  #isReading(): void {
    if (this.#running !== null) this.#problems.delete(RELAY);
  }
}

const RELAY = "relay";

const placeOf = (destination: string, topic: string | null): string =>
  topic === null ? destination : `${destination}/${topic}`;

/** Whether the work succeeded shows in what is left for the next start. */
async function settledWithin(work: Promise<unknown>, ms: number): Promise<void> {
  const over = Promise.withResolvers<void>();
  const timer = setTimeout(over.resolve, ms);
  await Promise.race([work.catch(() => {}), over.promise]);
  clearTimeout(timer);
}
