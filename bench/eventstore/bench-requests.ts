import type { SeededEvent } from "../../test/servers/kurrentdb.ts";

/** As many jobs as the relay adds at a time. */
export const BATCH = 500;

export const contextAt = (number: number) => `bench.context${number}`;
/** Where the jobs of a context go unless something else is asked for. */
export const queueAt = contextAt;

/** Of the request with this number: both sides make the same job of it. */
function referenceAt(number: number) {
  const digits = number.toString(16).padStart(12, "0");
  return {
    eventId: `00000000-0000-4000-8000-${digits}`,
    tenant: `tenant-${number % 20}`,
    requestId: `request-${number}`,
  };
}

/** As an application writes it. The contexts take turns. */
export function eventsOf(count: number, contexts: number): SeededEvent[] {
  return Array.from({ length: count }, (_, number) => {
    const { eventId, requestId, tenant } = referenceAt(number);
    const context = contextAt(number % contexts);
    const correlationId = `command-${number}`;
    const source = `service://${context}`;
    return {
      stream: `${context}.request-${tenant}-${requestId}`,
      id: eventId,
      type: "PayoutCreated.v1",
      data: { id: requestId, amount: 4_200, currency: "EUR", note: "x".repeat(100) },
      metadata: { correlationId, causationId: correlationId, source, tenant, eventId, intent: "outbox" },
    };
  });
}

/** As a program without a relay would add it. */
export function jobAt(number: number) {
  const { eventId, requestId, tenant } = referenceAt(number);
  return {
    name: "execute-request",
    data: { tenant, requestId },
    opts: { jobId: eventId, attempts: 1, removeOnComplete: false, removeOnFail: false },
  };
}
