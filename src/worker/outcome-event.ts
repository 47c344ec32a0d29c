import { createHash } from "node:crypto";
import { delayAfter, type RetryPolicy } from "../core/retry-policy.ts";
import type { LoggedEvent, NewLoggedEvent } from "../ports/event-log.ts";
import { OUTBOX_INTENT } from "../requests/request-filter.ts";
import type { Failure } from "./failures.ts";
import type { OutcomeTypes, RequestView } from "./request-view.ts";

/** The result of executing a request. */
export type Execution =
  | { readonly kind: "completed"; readonly result: unknown }
  | { readonly kind: "failed"; readonly failure: Failure; readonly atMs: number; readonly draw: number };

interface OutcomeRules {
  readonly types: OutcomeTypes;
  /** Null: the domain decides whether to retry. */
  readonly retry: RetryPolicy | null;
  /** `source` in the outcome's metadata. */
  readonly source: string;
}

/** A larger result is left out of the event: a log rejects events of about a megabyte. */
const RESULT_BYTES_MAX = 512 * 1024;

/**
 * The event that records an outcome. The same execution always yields the same event id, so that appending it twice is
 * safe.
 */
export function outcomeEvent(
  execution: Execution,
  view: RequestView,
  { requestId, tenant }: { readonly tenant: string; readonly requestId: string },
  rules: OutcomeRules,
): NewLoggedEvent {
  const { asking } = view;
  const { data, timing, type } =
    execution.kind === "completed"
      ? { type: rules.types.completed, data: { id: requestId, ...carried(execution.result) }, timing: {} }
      : failed(execution, view, requestId, rules);
  const id = outcomeId(asking, type, data);
  const { correlationId } = asking.metadata ?? {};
  const metadata = {
    ...(correlationId === undefined ? {} : { correlationId }),
    ...{ causationId: asking.id, source: rules.source, tenant, eventId: id },
    ...timing,
  };
  return { id, type, data, metadata };
}

function failed(
  { atMs, draw, failure }: Extract<Execution, { kind: "failed" }>,
  { attempt, endedBy }: RequestView,
  requestId: string,
  { retry, types }: OutcomeRules,
) {
  const { afterMs, reason } = failure;
  const computed = retry === null ? "exhausted" : delayAfter(retry, attempt, draw);
  // A request that the domain has ended in the meantime is not retried.
  const isOver = failure.isFinal || endedBy !== null;
  const isRetried = !isOver && computed !== "exhausted";
  const waitMs = isRetried ? Math.max(computed, afterMs ?? 0) : afterMs;
  const notBefore = isOver || waitMs === null ? {} : { notBefore: new Date(atMs + waitMs).toISOString() };
  const final = isOver || (retry !== null && !isRetried);
  return {
    type: types.failed,
    data: { id: requestId, reason, attempt, final },
    timing: { ...(isRetried ? { intent: OUTBOX_INTENT } : {}), ...(final ? {} : notBefore) },
  };
}

/** The effect has happened: a result that cannot be serialized must not keep the outcome out of the log. */
function carried(result: unknown): { result: unknown; resultOmitted?: string } {
  try {
    const text = JSON.stringify(result) ?? "null";
    const bytes = Buffer.byteLength(text);
    if (bytes <= RESULT_BYTES_MAX) return { result: JSON.parse(text) };
    return { result: null, resultOmitted: `it has ${bytes} bytes, more than ${RESULT_BYTES_MAX}` };
  } catch {
    return { result: null, resultOmitted: "it cannot be written as JSON" };
  }
}

/**
 * A UUID (version 8) derived from the outcome. A different result is a different event, and the log's expected revision
 * decides which one is recorded.
 */
function outcomeId(asking: LoggedEvent, type: string, data: object): string {
  const digest = createHash("sha256")
    .update(JSON.stringify([asking.stream, asking.id, type, data]))
    .digest();
  digest[6] = (digest[6]! & 0x0f) | 0x80;
  digest[8] = (digest[8]! & 0x3f) | 0x80;
  const hex = digest.toString("hex", 0, 16);
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}
