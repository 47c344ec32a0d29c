import type { Outcome } from "../core/outcome.ts";

/** A message that the relay's process sends to the destination in its parent. Payloads of the demo are text. */
export interface WireMessage {
  readonly id: string;
  readonly type: string;
  readonly destination: string;
  /** The source table, with the subscriber for a log; null if the configuration replaces the demo's headers. */
  readonly source: string | null;
  readonly key: string | null;
  readonly createdAt: string | null;
  readonly payload: string;
}

/** A request from the relay to the destination. */
export type ToDestination =
  | { readonly kind: "batch"; readonly batch: number; readonly messages: readonly WireMessage[] }
  /** The relay no longer waits for this batch: messages that have not arrived yet must be dropped. */
  | { readonly kind: "give up"; readonly batch: number };

/** The answer of the destination: one outcome per message, in the order of the messages. */
export interface ToRelay {
  readonly kind: "outcomes";
  readonly batch: number;
  readonly outcomes: readonly Outcome[];
}

/** The header with the source table of an event. */
export const SOURCE_HEADER = "x-source";

/** The destination of the outbox tables, as logs, metrics and the console name it. */
export const MAIN_DESTINATION = "broker";

/** The name of a table's events at a destination: a row of a log is delivered once per subscriber. */
export function lineOf(table: string, destination: string): string {
  return destination === MAIN_DESTINATION ? table : `${table}@${destination}`;
}
