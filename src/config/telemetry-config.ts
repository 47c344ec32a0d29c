import type { Settings } from "./settings/settings.ts";

/** Telemetry beyond standard output and `/metrics`. Null: off. */
export interface TelemetryConfig {
  readonly metricsPort: number | null;
  readonly metricsPush: { readonly url: string; readonly intervalMs: number } | null;
  readonly loki: LokiConfig | null;
  readonly tracing: TracingConfig | null;
  readonly notify: NotifyConfig | null;
  /** Contains {traceId} or {correlationId}. */
  readonly traceUrl: string | null;
}

interface NotifyConfig {
  readonly url: string;
  readonly token: string | null;
  readonly everyMs: number;
}

interface LokiConfig {
  readonly url: string;
  readonly level: Exclude<Settings["LOG_LEVEL"], "silent">;
  /** user:password */
  readonly basicAuth: string | null;
}

interface TracingConfig {
  /** The collector's address; the path for traces is appended. */
  readonly endpoint: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The share of the events without a sampling decision of their own. */
  readonly ratio: number;
}

/** The telemetry that the settings configure. */
export function telemetryConfig(settings: Settings, problems: string[]): TelemetryConfig {
  const { METRICS_PORT, PORT, ALLOY_PUSH_URL, OTEL_EXPORTER_OTLP_ENDPOINT } = settings;
  if (METRICS_PORT === PORT)
    problems.push(`METRICS_PORT and PORT are both ${PORT}: remove METRICS_PORT, because PORT serves metrics too`);
  const pushUrl = httpUrl("ALLOY_PUSH_URL", ALLOY_PUSH_URL, problems);
  const endpoint = httpUrl("OTEL_EXPORTER_OTLP_ENDPOINT", OTEL_EXPORTER_OTLP_ENDPOINT, problems);
  const headers = settings.OTEL_EXPORTER_OTLP_HEADERS ?? {};
  return {
    metricsPort: METRICS_PORT ?? null,
    metricsPush: pushUrl === null ? null : { url: pushUrl, intervalMs: settings.METRICS_PUSH_INTERVAL },
    loki: lokiConfig(settings, problems),
    tracing:
      endpoint === null || !sendsTraces(settings)
        ? null
        : { endpoint, headers, ratio: settings.OTEL_TRACES_SAMPLER_ARG },
    notify: notifyConfig(settings, problems),
    traceUrl: traceUrl(settings, problems),
  };
}

/** OpenTelemetry allows a list of exporters, of which this relay has one. */
function sendsTraces({ OTEL_TRACES_EXPORTER }: Settings): boolean {
  return OTEL_TRACES_EXPORTER.split(",").some((name) => name.trim().toLowerCase() === "otlp");
}

/** Warns of an exporter that the relay does not have. */
export function telemetryWarnings(settings: Settings): string[] {
  const { OTEL_TRACES_EXPORTER } = settings;
  if (sendsTraces(settings) || /^none$/i.test(OTEL_TRACES_EXPORTER.trim())) return [];
  return [`OTEL_TRACES_EXPORTER is ${JSON.stringify(OTEL_TRACES_EXPORTER)}, so traces are off: otlp turns them on`];
}

function notifyConfig(settings: Settings, problems: string[]): NotifyConfig | null {
  const { NOTIFY_INTERVAL: everyMs, NOTIFY_WEBHOOK_TOKEN: token = null, NOTIFY_WEBHOOK_URL } = settings;
  const url = httpUrl("NOTIFY_WEBHOOK_URL", NOTIFY_WEBHOOK_URL, problems);
  if (url === null && token !== null && NOTIFY_WEBHOOK_URL === undefined) {
    problems.push("NOTIFY_WEBHOOK_TOKEN is set but NOTIFY_WEBHOOK_URL is not: set it to https://host/path");
  }
  return url === null ? null : { url, token, everyMs };
}

const TRACE_PLACEHOLDER = /\{(?:traceId|correlationId)\}/;

function traceUrl({ TRACE_URL }: Settings, problems: string[]): string | null {
  const url = httpUrl("TRACE_URL", TRACE_URL, problems);
  if (url === null || TRACE_PLACEHOLDER.test(url)) return url;
  problems.push("TRACE_URL contains neither {traceId} nor {correlationId}: every event would link to the same page");
  return null;
}

function lokiConfig(settings: Settings, problems: string[]): LokiConfig | null {
  const { LOKI_HOST, LOKI_BASIC_AUTH, LOKI_ENABLED, LOKI_LEVEL, LOG_LEVEL } = settings;
  if (LOKI_HOST === undefined) {
    if (LOKI_ENABLED === true)
      problems.push("LOKI_ENABLED is true but LOKI_HOST is not set: set it to http://host:3100");
    return null;
  }
  const url = httpUrl("LOKI_HOST", LOKI_HOST, problems);
  if (LOKI_BASIC_AUTH !== undefined && !LOKI_BASIC_AUTH.includes(":")) {
    problems.push("LOKI_BASIC_AUTH has no colon: write user:password");
  }
  if (url === null || LOKI_ENABLED === false) return null;
  const level = LOKI_LEVEL ?? (LOG_LEVEL === "silent" ? "fatal" : LOG_LEVEL);
  return { url, level, basicAuth: LOKI_BASIC_AUTH ?? null };
}

function httpUrl(name: string, value: string | undefined, problems: string[]): string | null {
  if (value === undefined) return null;
  if (URL.canParse(value) && /^https?:$/.test(new URL(value).protocol)) return value;
  problems.push(`${name} is not an http:// or https:// URL`);
  return null;
}
