import type { LoggedEvent } from "../ports/event-log.ts";

/** The types by which a request's stream says how it ended. */
export interface OutcomeTypes {
  readonly completed: string;
  readonly failed: string;
  /** Of the domain, such as `PayoutCancelled.v1`: behind one of them nothing is executed any more. */
  readonly ended: readonly string[];
}

/** What a request's stream says about one job. */
export interface RequestView {
  /** The event that asked for the job. */
  readonly asking: LoggedEvent;
  /** What the domain asked for: the asking event itself, or where a chain of scheduled retries began. */
  readonly first: LoggedEvent;
  /** Of this chain, counted from its failures. */
  readonly attempt: number;
  /** What became of this job, if that is recorded already. */
  readonly standing: LoggedEvent | null;
  /** What ended the request since the job was asked for. */
  readonly endedBy: LoggedEvent | null;
  readonly last: bigint;
}

/** Null when the stream does not have the event that asked. */
export function viewOf(events: readonly LoggedEvent[], askingId: string, types: OutcomeTypes): RequestView | null {
  const asking = events.find(({ id }) => id === askingId);
  const last = events.at(-1)?.revision;
  if (asking === undefined || last === undefined) return null;
  const later = events.filter(({ revision }) => revision > asking.revision);
  const isOutcome = ({ type }: LoggedEvent) => type === types.completed || type === types.failed;
  const standing = later.find((event) => isOutcome(event) && event.metadata?.causationId === asking.id) ?? null;
  const endedBy = later.find((event) => isEnd(event, types)) ?? null;
  return { asking, ...chainOf(events, asking, types), standing, endedBy, last };
}

function isEnd({ data, type }: LoggedEvent, { completed, ended, failed }: OutcomeTypes): boolean {
  if (type === completed || ended.includes(type)) return true;
  return type === failed && isFinal(data);
}

function isFinal(data: unknown): boolean {
  return typeof data === "object" && data !== null && "final" in data && data.final === true;
}

/** A scheduled retry is asked for by a failure, which names the event whose job it was. */
function chainOf(events: readonly LoggedEvent[], asking: LoggedEvent, { failed }: OutcomeTypes) {
  const byId = new Map(events.map((event) => [event.id, event]));
  let first = asking;
  let attempt = 1;
  while (first.type === failed) {
    const cause = byId.get(String(first.metadata?.causationId));
    if (cause === undefined || cause.revision >= first.revision) break;
    first = cause;
    attempt += 1;
  }
  return { first, attempt };
}

/**
 * What the provider is to recognise a try by. Redelivery and scheduled retries have the same one, because after a
 * failure nobody knows whether it took effect; what the domain asks for anew has another.
 */
export const idempotencyKey = (tenant: string, requestId: string, { first }: RequestView) =>
  `${tenant}:${requestId}:${first.revision}`;
