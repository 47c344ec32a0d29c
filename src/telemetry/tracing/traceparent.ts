import type { Headers } from "../../core/event.ts";

/** The context of a span, from the W3C header. */
interface RemoteContext {
  readonly traceId: string;
  readonly spanId: string;
  readonly traceFlags: number;
  readonly isRemote: true;
}

const HEADER = "traceparent";
const FORM = /^[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?$/;
const SAMPLED = 1;

/** The row's own header in any letter case; undefined if it has none. */
export function traceparentOf(headers: Headers): string | undefined {
  const usual = headers[HEADER];
  if (usual !== undefined) return usual;
  for (const name in headers) if (name.length === HEADER.length && name.toLowerCase() === HEADER) return headers[name];
  return undefined;
}

/** Null for an invalid context, and for one that is not sampled. */
export function sampledContext(traceparent: string): RemoteContext | null {
  const [, traceId, spanId, flags] = FORM.exec(traceparent) ?? [];
  if (traceId === undefined || spanId === undefined || traceparent.startsWith("ff")) return null;
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return null;
  const traceFlags = Number.parseInt(flags ?? "0", 16);
  return traceFlags & SAMPLED ? { traceId, spanId, traceFlags: SAMPLED, isRemote: true } : null;
}

/** Adds the W3C header for this context. */
export function withTraceparent(headers: Headers, context: { traceId: string; spanId: string }): Headers {
  return { ...headers, [HEADER]: `00-${context.traceId}-${context.spanId}-01` };
}
