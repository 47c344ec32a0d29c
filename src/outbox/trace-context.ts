/** The W3C headers of a trace. */
export interface TraceContext {
  readonly traceparent: string;
  readonly tracestate: string | undefined;
}

/** The part of OpenTelemetry's API that is used. */
interface TraceApi {
  readonly context: { active(): unknown };
  readonly trace: { getSpanContext(context: unknown): SpanContext | undefined };
}

interface SpanContext {
  readonly traceId: string;
  readonly spanId: string;
  readonly traceFlags: number;
  readonly traceState?: { serialize(): string } | undefined;
}

const importApi = async (): Promise<TraceApi> => (await import("@opentelemetry/api")) as TraceApi;

/**
 * Reads the context of the application's active span; null without one. OpenTelemetry is an optional peer dependency.
 */
export function activeTrace(load: () => Promise<TraceApi> = importApi): () => Promise<TraceContext | null> {
  let api: Promise<TraceApi | null> | undefined;
  return async () => {
    api ??= load().catch(() => null);
    const loaded = await api;
    if (loaded === null) return null;
    const span = loaded.trace.getSpanContext(loaded.context.active());
    if (span === undefined || !isValid(span)) return null;
    const flags = span.traceFlags.toString(16).padStart(2, "0");
    const tracestate = span.traceState?.serialize();
    return { traceparent: `00-${span.traceId}-${span.spanId}-${flags}`, tracestate: tracestate || undefined };
  };
}

function isValid({ traceId, spanId }: SpanContext): boolean {
  return /^(?!0+$)[0-9a-f]{32}$/.test(traceId) && /^(?!0+$)[0-9a-f]{16}$/.test(spanId);
}
