import type { EventHeaders } from "../../core/event.ts";

interface Traced {
  readonly headers: EventHeaders;
  readonly correlationId: string | null;
}

/** Version, trace id, span id, flags: W3C Trace Context. */
const TRACEPARENT = /^[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}/i;

/** Link to the trace of an event; null where it is not configured, or the event has no trace. */
export function traceLink(template: string | null | undefined, { correlationId, headers }: Traced): string | null {
  if (template == null) return null;
  const name = Object.keys(headers).find((it) => it.toLowerCase() === "traceparent");
  const traceId = TRACEPARENT.exec(name === undefined ? "" : (headers[name] ?? ""))?.[1] ?? null;
  const values: Readonly<Record<string, string | null>> = { traceId, correlationId };
  let isKnown = true;
  // Encoded, so that values of an event cannot change the rest of the URL.
  const link = template.replaceAll(/\{(traceId|correlationId)\}/g, (_, place: string) => {
    const value = values[place] ?? null;
    if (value === null) isKnown = false;
    return encodeURIComponent(value ?? "");
  });
  return isKnown ? link : null;
}
