import type { Settings } from "./settings.ts";

/** What is told to others besides standard output and `/metrics`. Null: it is not. */
export interface TelemetryConfig {
  readonly metricsPort: number | null;
  readonly metricsPush: { readonly url: string; readonly intervalMs: number } | null;
  readonly loki: LokiConfig | null;
  readonly tracing: TracingConfig | null;
}

interface LokiConfig {
  readonly url: string;
  readonly level: Exclude<Settings["LOG_LEVEL"], "silent">;
  /** user:password */
  readonly basicAuth: string | null;
}

interface TracingConfig {
  /** Of the collector; the traces' own path is appended to it. */
  readonly endpoint: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Of the events whose context does not say whether they are traced. */
  readonly ratio: number;
}

export function telemetryConfig(settings: Settings, problems: string[]): TelemetryConfig {
  const { METRICS_PORT, PORT, ALLOY_PUSH_URL, OTEL_EXPORTER_OTLP_ENDPOINT } = settings;
  if (METRICS_PORT === PORT) problems.push(`METRICS_PORT and PORT are both ${PORT}: metrics are on PORT anyway`);
  const pushUrl = httpUrl("ALLOY_PUSH_URL", ALLOY_PUSH_URL, problems);
  const endpoint = httpUrl("OTEL_EXPORTER_OTLP_ENDPOINT", OTEL_EXPORTER_OTLP_ENDPOINT, problems);
  const headers = settings.OTEL_EXPORTER_OTLP_HEADERS ?? {};
  return {
    metricsPort: METRICS_PORT ?? null,
    metricsPush: pushUrl === null ? null : { url: pushUrl, intervalMs: settings.METRICS_PUSH_INTERVAL },
    loki: lokiConfig(settings, problems),
    tracing: endpoint === null ? null : { endpoint, headers, ratio: settings.OTEL_TRACES_SAMPLER_ARG },
  };
}

function lokiConfig(settings: Settings, problems: string[]): LokiConfig | null {
  const { LOKI_HOST, LOKI_BASIC_AUTH, LOKI_ENABLED, LOKI_LEVEL, LOG_LEVEL } = settings;
  if (LOKI_HOST === undefined) {
    if (LOKI_ENABLED === true)
      problems.push("LOKI_ENABLED is true and LOKI_HOST is missing: set it to http://host:3100");
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
  problems.push(`${name} is no http:// or https:// address`);
  return null;
}
