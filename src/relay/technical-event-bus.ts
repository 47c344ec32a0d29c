import type { Clock } from "../core/clock.ts";
import type {
  TechnicalEvent,
  TechnicalEventMap,
  TechnicalEventName,
  TechnicalEvents,
} from "../ports/technical-events.ts";

/** A function that gets technical events of one kind. */
export type TechnicalEventListener<Name extends TechnicalEventName> = (
  event: Extract<TechnicalEvent, { readonly name: Name }>,
) => void;

/** Passes technical events to the listeners, in order and synchronously. */
export class TechnicalEventBus implements TechnicalEvents {
  readonly #clock: Clock;
  readonly #listeners = new Map<TechnicalEventName, Set<(event: never) => void>>();
  readonly #listenersToAll = new Set<(event: TechnicalEvent) => void>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Subscribes to one kind of event. Returns the function that unsubscribes. */
  on<Name extends TechnicalEventName>(name: Name, listener: TechnicalEventListener<Name>): () => void {
    const listeners = this.#listeners.get(name) ?? new Set();
    this.#listeners.set(name, listeners);
    listeners.add(listener);
    return () => void listeners.delete(listener);
  }

  /** Subscribes to all events. Returns the function that unsubscribes. */
  onAny(listener: (event: TechnicalEvent) => void): () => void {
    this.#listenersToAll.add(listener);
    return () => void this.#listenersToAll.delete(listener);
  }

  wants(name: TechnicalEventName): boolean {
    return this.#listenersToAll.size > 0 || (this.#listeners.get(name)?.size ?? 0) > 0;
  }

  emit<Name extends TechnicalEventName>(name: Name, event: TechnicalEventMap[Name]): void {
    if (!this.wants(name)) return;
    const complete = { name, timestamp: this.#clock.wallMs(), ...event } as unknown as TechnicalEvent;
    for (const listener of this.#listeners.get(name) ?? [])
      this.#call(listener as (event: TechnicalEvent) => void, complete);
    for (const listener of this.#listenersToAll) this.#call(listener, complete);
  }

  #call(listener: (event: TechnicalEvent) => void, event: TechnicalEvent): void {
    try {
      listener(event);
    } catch (error) {
      // A listener's error must not stop the delivery. The process gets it like any uncaught error.
      queueMicrotask(() => {
        throw error;
      });
    }
  }
}
