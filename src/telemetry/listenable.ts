import type { TechnicalEvent, TechnicalEventName } from "../ports/technical-events.ts";

/** Emits technical events: the relay. Events without a listener are never built, so subscribe only to what you need. */
export interface Listenable {
  on<Name extends TechnicalEventName>(
    name: Name,
    listener: (event: Extract<TechnicalEvent, { readonly name: Name }>) => void,
  ): () => void;
}
