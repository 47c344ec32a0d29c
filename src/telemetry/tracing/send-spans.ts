import type { Attributes, Context, Link, Span, SpanContext, Tracer } from "@opentelemetry/api";
import { reasonOf } from "../../core/errors.ts";
import type { EventHeaders, Message } from "../../core/event.ts";
import { errorTypeOf, type Outcome } from "../../core/outcome.ts";
import { eventSampler, traceIdOf } from "./event-sampler.ts";
import type { Otel } from "./load-otel.ts";

interface SendSpansOptions {
  readonly api: Otel["api"];
  readonly tracer: Tracer;
  /** Makes the next root span start this trace. */
  readonly beginTrace: (traceId: string) => void;
  /** The broker's name in the messaging conventions. */
  readonly system: string;
  readonly ratio: number;
  readonly redact: (text: string) => string;
}

/** Spans of single events per publish: full sampling must not slow the delivery down. */
const EVENT_SPANS_MAX = 100;

/**
 * Spans of publishes. Each traced event gets one: in the trace of its row, or in a new trace that its message then
 * carries. Each topic of the publish gets one, linked to those.
 */
export class SendSpans {
  readonly #options: SendSpansOptions;
  readonly #isChosen: (id: string) => boolean;

  constructor(options: SendSpansOptions) {
    this.#options = options;
    this.#isChosen = eventSampler(options.ratio);
  }

  /** Null when no event of the publish is traced; that case is nearly free. */
  begin(batch: readonly Message[]): TracedPublish | null {
    let traced: TracedPublish | null = null;
    for (let index = 0; index < batch.length; index += 1) {
      const message = batch[index]!;
      if (message.headers.traceparent === undefined && !this.#isChosen(message.event.id)) continue;
      const given = traceparentOf(message.headers);
      const parent = given === undefined ? null : sampledContext(given);
      if (given !== undefined && parent === null) continue;
      traced ??= new TracedPublish(this.#options, batch);
      if (!traced.trace(index, message, parent)) break;
    }
    traced?.ready();
    return traced;
  }
}

/** The spans of one publish. */
export class TracedPublish {
  readonly #options: SendSpansOptions;
  readonly #root: Context;
  readonly #batch: readonly Message[];
  readonly #messages: Message[];
  readonly #events = new Map<number, Span>();
  readonly #links = new Map<string, Link[]>();
  readonly #topics = new Map<string, Span>();
  readonly #failedTopics = new Map<string, Outcome>();

  constructor(options: SendSpansOptions, batch: readonly Message[]) {
    this.#options = options;
    this.#root = options.api.ROOT_CONTEXT;
    this.#batch = batch;
    this.#messages = [...batch];
  }

  /** What to send: the same messages, with a header where a new trace starts. */
  get messages(): readonly Message[] {
    return this.#messages;
  }

  /** False when the publish can hold no more spans. */
  trace(index: number, message: Message, parent: SpanContext | null): boolean {
    const { api, beginTrace } = this.#options;
    if (parent === null) beginTrace(traceIdOf(message));
    const kind = parent === null ? api.SpanKind.PRODUCER : api.SpanKind.CLIENT;
    const context = parent === null ? this.#root : api.trace.setSpanContext(this.#root, parent);
    const span = this.#start(message.topic, kind, attributesOf(message), context);
    if (parent === null) {
      this.#messages[index] = { ...message, headers: withTraceparent(message.headers, span.spanContext()) };
    }
    this.#events.set(index, span);
    const links = this.#links.get(message.topic) ?? [];
    links.push({ context: parent ?? span.spanContext() });
    this.#links.set(message.topic, links);
    return this.#events.size < EVENT_SPANS_MAX;
  }

  /** Call when all traced events are added; starts the topics' spans. */
  ready(): void {
    for (const [topic, links] of this.#links) {
      const count = { "messaging.batch.message_count": countOf(this.#batch, topic) };
      this.#topics.set(topic, this.#start(topic, this.#options.api.SpanKind.CLIENT, count, this.#root, links));
    }
  }

  outcome(index: number, outcome: Outcome): void {
    const isFailure = outcome.kind === "retry" || outcome.kind === "rejected";
    if (isFailure) this.#failedTopics.set(this.#batch[index]!.topic, outcome);
    const span = this.#events.get(index);
    if (span === undefined) return;
    this.#events.delete(index);
    if (outcome.kind !== "delivered") span.setAttribute("outbox_relay.outcome", outcome.kind);
    this.#end(span, outcome);
  }

  /** The publish ended; `error` is why the remaining events have no outcome. */
  end(error: unknown = null): void {
    const failure: Outcome | undefined =
      error === null ? undefined : { kind: "retry", scope: "destination", reason: reasonOf(error), error };
    for (const span of this.#events.values()) this.#end(span, failure);
    for (const [topic, span] of this.#topics) this.#end(span, failure ?? this.#failedTopics.get(topic));
    this.#events.clear();
    this.#topics.clear();
  }

  #start(topic: string, kind: number, more: Attributes, context: Context, links: Link[] = []): Span {
    const attributes: Attributes = {
      "messaging.system": this.#options.system,
      "messaging.operation.name": "send",
      "messaging.operation.type": "send",
      "messaging.destination.name": topic,
      ...more,
    };
    return this.#options.tracer.startSpan(`send ${topic}`, { kind, attributes, links }, context);
  }

  #end(span: Span, outcome: Outcome | undefined): void {
    if (outcome?.kind === "retry" || outcome?.kind === "rejected") {
      const { api, redact } = this.#options;
      span.setAttribute("error.type", errorTypeOf(outcome));
      span.setStatus({ code: api.SpanStatusCode.ERROR, message: redact(outcome.reason) });
    }
    span.end();
  }
}

function attributesOf({ event }: Message): Attributes {
  const { id, correlationId } = event;
  const conversation = correlationId === null ? {} : { "messaging.message.conversation_id": correlationId };
  return { "messaging.message.id": id, ...conversation };
}

function countOf(batch: readonly Message[], topic: string): number {
  let count = 0;
  for (const message of batch) if (message.topic === topic) count += 1;
  return count;
}

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
export function traceparentOf(headers: EventHeaders): string | undefined {
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
function withTraceparent(headers: EventHeaders, context: { traceId: string; spanId: string }): EventHeaders {
  return { ...headers, [HEADER]: `00-${context.traceId}-${context.spanId}-01` };
}
