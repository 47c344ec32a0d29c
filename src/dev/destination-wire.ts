import type { Outcome } from "../core/outcome.ts";

/** A message as the relay's process hands it to the destination in its parent. The demo's payloads are text. */
export interface WireMessage {
  readonly id: string;
  readonly type: string;
  readonly destination: string;
  /** The table that it came from, with its subscriber if it has one; null where other headers are to be sent. */
  readonly source: string | null;
  readonly key: string | null;
  readonly createdAt: string | null;
  readonly payload: string;
}

/** From the relay to the destination. */
export type ToDestination =
  | { readonly kind: "batch"; readonly batch: number; readonly messages: readonly WireMessage[] }
  /** Nobody waits for this one any more: what has not arrived yet must not. */
  | { readonly kind: "give up"; readonly batch: number };

/** From the destination to the relay. One outcome for each message, in their order. */
export interface ToRelay {
  readonly kind: "outcomes";
  readonly batch: number;
  readonly outcomes: readonly Outcome[];
}

/** The header that tells the destination which table an event came from. */
export const SOURCE_HEADER = "x-source";

/** Where what is in queues goes, as logs, metrics and the console name it. */
export const MAIN_DESTINATION = "broker";

/** What an event of a table is called on its way: the same row of a log goes once to each subscriber. */
export function lineOf(table: string, destination: string): string {
  return destination === MAIN_DESTINATION ? table : `${table}@${destination}`;
}
