import type { Message } from "../../core/event.ts";
import type { PublisherCapabilities } from "../../ports/publisher.ts";
import type { Send } from "./history.ts";
import type { World } from "./port-call.ts";

export interface BrokerOptions extends PublisherCapabilities {
  readonly name: string;
  /** What was on the wire when a publish was given up may still arrive. */
  readonly deliversAfterAbort: boolean;
}

/** The destination itself, outside of all processes: what has arrived, and what it refuses at present. */
export class SimBroker {
  readonly options: BrokerOptions;
  readonly #world: World;
  readonly #known = new Set<string>();
  readonly #topicsUpAtMs = new Map<string, number>();
  #upAtMs = 0;

  constructor(options: BrokerOptions, world: World) {
    this.options = options;
    this.#world = world;
  }

  get isUp(): boolean {
    return this.#world.time.nowMs >= this.#upAtMs;
  }

  isTopicUp(topic: string): boolean {
    return this.#world.time.nowMs >= (this.#topicsUpAtMs.get(topic) ?? 0);
  }

  goDown(forMs: number): void {
    this.#upAtMs = this.#world.time.nowMs + forMs;
    this.#world.history.note(this.options.name, `down for ${forMs} ms`);
  }

  takeTopicDown(topic: string, forMs: number): void {
    this.#topicsUpAtMs.set(topic, this.#world.time.nowMs + forMs);
    this.#world.history.note(this.options.name, `topic ${topic} down for ${forMs} ms`);
  }

  comeUp(): void {
    this.#upAtMs = 0;
    this.#topicsUpAtMs.clear();
  }

  /** The message is in. A destination that deduplicates keeps the first one only. */
  accept(message: Message, send: Send): void {
    const { history, time } = this.#world;
    send.arrived = true;
    const { id } = message.event;
    const content = message.payload.toString("latin1");
    if (this.options.deduplicates && this.#known.has(id)) return;
    this.#known.add(id);
    history.note(send.process, `arrived ${id} of ${message.key} at ${this.options.name}`);
    const { process } = send;
    const destination = this.options.name;
    history.arrivals.push({ id, key: message.key, content, destination, process, atMs: time.nowMs });
  }
}
