import type { TechnicalEvent, TechnicalEventName, TechnicalEventStore } from "../../ports/technical-events.ts";

/** A store whose events a test can read. */
export interface MemoryTechnicalEventStore extends TechnicalEventStore {
  /** Oldest first. */
  readonly events: readonly TechnicalEvent[];
  ofName<Name extends TechnicalEventName>(name: Name): Extract<TechnicalEvent, { readonly name: Name }>[];
}

/** Keeps the last technical events in memory. */
export function memoryTechnicalEventStore(eventsMax = 10_000): MemoryTechnicalEventStore {
  const events: TechnicalEvent[] = [];
  return {
    events,
    ofName: <Name extends TechnicalEventName>(name: Name) =>
      events.filter((event): event is Extract<TechnicalEvent, { readonly name: Name }> => event.name === name),
    async append(added) {
      for (const event of added) events.push(event);
      if (events.length > eventsMax) events.splice(0, events.length - eventsMax);
    },
    async close() {},
  };
}
