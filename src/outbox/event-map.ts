import type { NewEvent } from "./new-event.ts";

/** Events without a map of types: any type, with any payload. */
export type AnyEvents = Record<string, unknown>;

/** The events of a map of payloads by type, `interface ShopEvents { "order.placed": { id: string } }`. */
export type EventOf<Events extends object> = {
  [Type in keyof Events & string]: NewEvent<Type, Events[Type]>;
}[keyof Events & string];
