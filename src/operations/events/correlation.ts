import { destinationOf } from "../../postgres/pipelines.ts";
import { type AttemptOfEvent, attemptsOfMany } from "./attempts.ts";
import { type ListedEvent, listEvents } from "./event-list.ts";
import type { OperationTarget } from "./event-source.ts";
import { traceLink } from "./trace-link.ts";

/** One step in the history of a correlation's events. */
interface CorrelationStep {
  readonly at: string;
  readonly what: "written" | "delivered" | "failed" | "dead";
  readonly id: string;
  readonly source: string;
  readonly type: string;
  readonly key: string | null;
  /** Null for the creation. */
  readonly pipeline: string | null;
  readonly destination: string | null;
  readonly durationMs: number | null;
  readonly reason: string | null;
}

interface Correlation {
  readonly correlationId: string;
  readonly events: readonly ListedEvent[];
  /** In order of time. */
  readonly steps: readonly CorrelationStep[];
  /** Not all events of this id are shown. */
  readonly isMore: boolean;
  readonly traceUrl: string | null;
}

const EVENTS_MAX = 100;

/**
 * History of all events of a correlation id, across sources and destinations. Deliveries are shown as far as they were
 * recorded: every failure, and of the others as many as RECORD_DELIVERED says.
 */
export async function showCorrelation(target: OperationTarget, correlationId: string): Promise<Correlation> {
  const { cursor, events } = await listEvents(target, { correlationId }, { limit: EVENTS_MAX });
  const ids = [...new Set(events.map(({ id }) => id))];
  const attempts = (await attemptsOfMany(target.database, ids)).filter((it) => it.correlationId === correlationId);
  const steps = events
    .flatMap((event) => [...writing(event), ...attempts.filter((it) => isOf(it, event)).map((it) => tried(it, event))])
    .toSorted((left, right) => (left.at < right.at ? -1 : left.at > right.at ? 1 : 0));
  const headers = attempts.findLast((it) => it.headers?.traceparent !== undefined)?.headers ?? {};
  const traceUrl = traceLink(target.traceUrl, { headers, correlationId });
  return { correlationId, events, steps, isMore: cursor !== null, traceUrl };
}

function isOf(
  { eventId, pipeline }: AttemptOfEvent & { readonly eventId: string },
  { id, source }: ListedEvent,
): boolean {
  return eventId === id && (pipeline.startsWith(`${source}->`) || pipeline.startsWith(`${source}@`));
}

function writing({ createdAt, id, key, source, type }: ListedEvent): readonly CorrelationStep[] {
  if (createdAt === null) return [];
  const nowhere = { pipeline: null, destination: null, durationMs: null, reason: null };
  return [{ at: createdAt, what: "written", id, source, type, key, ...nowhere }];
}

function tried({ at, durationMs, outcome, pipeline, reason }: AttemptOfEvent, event: ListedEvent): CorrelationStep {
  const { id, key, source, type } = event;
  const destination = destinationOf(pipeline);
  return { at, what: outcome, id, source, type, key, pipeline, destination, durationMs, reason };
}
