import type { Outcome } from "../core/outcome.ts";

/** A message as the relay's process hands it to the destination in its parent. The demo's payloads are text. */
export interface WireMessage {
  readonly id: string;
  readonly type: string;
  /** The table that it came from; null where the relay was told to send other headers. */
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
