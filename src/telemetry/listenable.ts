import type { TechnicalEvent, TechnicalEventName } from "../ports/technical-events.ts";

/** Who tells technical events: the relay. Listeners name those they want, because unheard ones are never made. */
export interface Listenable {
  on<Name extends TechnicalEventName>(
    name: Name,
    listener: (event: Extract<TechnicalEvent, { readonly name: Name }>) => void,
  ): () => void;
}
