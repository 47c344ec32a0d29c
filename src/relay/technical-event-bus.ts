import type { Clock } from "../core/clock.ts";
import type {
  TechnicalEvent,
  TechnicalEventMap,
  TechnicalEventName,
  TechnicalEvents,
} from "../ports/technical-events.ts";

export type Listener<Name extends TechnicalEventName> = (
  event: Extract<TechnicalEvent, { readonly name: Name }>,
) => void;

/** Carries technical events to whoever listens, in order, in the same turn. */
export class TechnicalEventBus implements TechnicalEvents {
  readonly #clock: Clock;
  readonly #listeners = new Map<TechnicalEventName, Set<(event: never) => void>>();
  readonly #listenersToAll = new Set<(event: TechnicalEvent) => void>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Returns the function that ends the subscription. */
  on<Name extends TechnicalEventName>(name: Name, listener: Listener<Name>): () => void {
    const listeners = this.#listeners.get(name) ?? new Set();
    this.#listeners.set(name, listeners);
    listeners.add(listener);
    return () => void listeners.delete(listener);
  }

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
      this.#tell(listener as (event: TechnicalEvent) => void, complete);
    for (const listener of this.#listenersToAll) this.#tell(listener, complete);
  }

  #tell(listener: (event: TechnicalEvent) => void, event: TechnicalEvent): void {
    try {
      listener(event);
    } catch (error) {
      // A listener's fault is its own: delivery goes on, and the process learns of it as of any uncaught error.
      queueMicrotask(() => {
        throw error;
      });
    }
  }
}
