import type { ReadableSpan, SpanExporter } from "@opentelemetry/sdk-trace";
import type { Clock } from "../../core/clock.ts";
import { reasonOf } from "../../core/errors.ts";
import type { Publisher } from "../../ports/publisher.ts";
import type { Logger } from "../logs/logger.ts";
import { RepeatLimiter } from "../logs/repeat-limiter.ts";
import { pushTarget } from "../push/post.ts";
import type { PushTally } from "../push-tally.ts";
import { loadOtel, type Otel } from "./load-otel.ts";
import { SendSpans } from "./send-spans.ts";
import { tracedPublisher } from "./traced-publisher.ts";

interface TracingOptions {
  /** The collector's URL, with or without a login. */
  readonly endpoint: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly ratio: number;
  readonly service: string;
  readonly version: string;
  readonly instance: string;
  readonly tally: PushTally;
  readonly logger: Logger;
  readonly clock: Clock;
  readonly redact: (text: string) => string;
}

/** Traces publishers, and exports their spans. */
export interface Tracing {
  /** The same publisher, with spans. `system` is the broker's name in the messaging conventions. */
  watch(publisher: Publisher, system: string): Publisher;
  /** Exports what is left. Returns when that is done or the time is up. */
  stop(): Promise<void>;
}

const PATH = "/v1/traces";
const QUEUE_MAX = 2_048;
const EXPORT_MAX = 512;
const EXPORT_EVERY_MS = 1_000;
const EXPORT_TIMEOUT_MS = 5_000;
const STOP_MS = 2_000;
const WARN_EVERY_MS = 60_000;

/** Opens a tracer for our own spans and collector only: it registers nothing globally. */
export async function openTracing(options: TracingOptions): Promise<Tracing> {
  const otel = await loadOtel();
  const { api, sdk, resources } = otel;
  options.tally.expect("traces");
  const ids = new ChosenTraceIds(new sdk.RandomIdGenerator());
  const processor = new sdk.BatchSpanProcessor({
    exporter: countingExporter(otel, options),
    maxQueueSize: QUEUE_MAX,
    maxExportBatchSize: EXPORT_MAX,
    scheduledDelayMillis: EXPORT_EVERY_MS,
    exportTimeoutMillis: EXPORT_TIMEOUT_MS,
  });
  const provider = new sdk.TracerProvider({
    // Sampling is decided per event, before any span exists.
    sampler: new sdk.AlwaysOnSampler(),
    idGenerator: ids,
    spanProcessors: [processor],
    resource: resources.resourceFromAttributes({
      "service.name": options.service,
      "service.version": options.version,
      "service.instance.id": options.instance,
    }),
  });
  const tracer = provider.getTracer("outbox-relay", options.version);
  const beginTrace = (traceId: string) => ids.choose(traceId);
  const { ratio, redact } = options;
  return {
    watch: (publisher, system) =>
      tracedPublisher(publisher, new SendSpans({ api, tracer, beginTrace, system, ratio, redact })),
    async stop() {
      const over = new AbortController();
      const closed = provider.shutdown().catch(() => {});
      await Promise.race([closed, options.clock.sleep(STOP_MS, over.signal)]);
      over.abort();
    },
  };
}

/** Gives the next root span the preset trace id; all other ids are random. */
class ChosenTraceIds {
  readonly #random: { generateTraceId(): string; generateSpanId(): string };
  #chosen: string | null = null;

  constructor(random: { generateTraceId(): string; generateSpanId(): string }) {
    this.#random = random;
  }

  choose(traceId: string): void {
    this.#chosen = traceId;
  }

  readonly generateTraceId = (): string => {
    const chosen = this.#chosen;
    this.#chosen = null;
    return chosen ?? this.#random.generateTraceId();
  };

  readonly generateSpanId = (): string => this.#random.generateSpanId();
}

function countingExporter({ otlp }: Otel, options: TracingOptions): SpanExporter {
  const { endpoint, headers, logger, tally } = options;
  const target = pushTarget(endpoint, PATH, null);
  const all = { ...target.headers, ...headers };
  const inner = new otlp.OTLPTraceExporter({ url: target.url, headers: all, timeoutMillis: EXPORT_TIMEOUT_MS });
  const repeats = new RepeatLimiter(options.clock, WARN_EVERY_MS);
  const failed = (spans: readonly ReadableSpan[], error: unknown) => {
    tally.failed("traces");
    tally.dropped("traces", spans.length);
    const repeated = repeats.count("");
    const reason = reasonOf(error, 200);
    if (repeated !== null) logger.warn({ receiver: "traces", reason, repeated }, "spans could not be pushed");
  };
  return {
    export: (spans, done) =>
      inner.export(spans, (result) => {
        if (result.code !== 0) failed(spans, result.error ?? "no answer");
        done({ code: 0 });
      }),
    shutdown: () => inner.shutdown(),
    forceFlush: () => inner.forceFlush(),
  };
}
