import type { LoggedEvent } from "../ports/event-log.ts";

/** The event types that end a request. */
export interface OutcomeTypes {
  readonly completed: string;
  readonly failed: string;
  /** Types of the domain, such as `PayoutCancelled.v1`: after one of them nothing is executed. */
  readonly ended: readonly string[];
}

/** The state of one job, derived from its request's stream. */
export interface RequestView {
  /** The event that requested the job. */
  readonly asking: LoggedEvent;
  /** The domain's request: the asking event itself, or the first event of a chain of scheduled retries. */
  readonly first: LoggedEvent;
  /** The attempt within this chain, counted by its failures. */
  readonly attempt: number;
  /** The outcome of this job, if it is recorded. */
  readonly recorded: LoggedEvent | null;
  /** The event that ended the request after the job was requested. */
  readonly endedBy: LoggedEvent | null;
  readonly last: bigint;
}

/** Null when the stream does not hold the asking event. */
export function viewOf(events: readonly LoggedEvent[], askingId: string, types: OutcomeTypes): RequestView | null {
  const asking = events.find(({ id }) => id === askingId);
  const last = events.at(-1)?.revision;
  if (asking === undefined || last === undefined) return null;
  const later = events.filter(({ revision }) => revision > asking.revision);
  const isOutcome = ({ type }: LoggedEvent) => type === types.completed || type === types.failed;
  const recorded = later.find((event) => isOutcome(event) && event.metadata?.causationId === asking.id) ?? null;
  const endedBy = later.find((event) => isEnd(event, types)) ?? null;
  return { asking, ...chainOf(events, asking, types), recorded, endedBy, last };
}

function isEnd({ data, type }: LoggedEvent, { completed, ended, failed }: OutcomeTypes): boolean {
  if (type === completed || ended.includes(type)) return true;
  return type === failed && isFinal(data);
}

function isFinal(data: unknown): boolean {
  return typeof data === "object" && data !== null && "final" in data && data.final === true;
}

/** A failure event requests a scheduled retry and names the event of the failed job as its cause. */
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
 * The key by which the provider recognizes a repeated attempt. Redeliveries and scheduled retries share it, because
 * after a failure it is unknown whether the request took effect; a new request of the domain has a new key.
 */
export const idempotencyKey = (tenant: string, requestId: string, { first }: RequestView) =>
  `${tenant}:${requestId}:${first.revision}`;
