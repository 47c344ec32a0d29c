import { z } from "zod";
import type { MetricsText } from "../../telemetry/metrics/metrics-text.ts";
import type { Health, Readiness } from "../health/health.ts";
import { ok, type Route, route } from "../route.ts";
import { healthSchema } from "../schemas/health.ts";

/** What the public probes show. Each answer is quick, whatever hangs behind it. */
export interface ProbeFaces {
  health(): Promise<Health>;
  /** Whether the service can work: the database and the relay's schema answer, and the loops run. */
  readiness(): Promise<Readiness>;
  /** In the format that the Accept header asks for. */
  metrics(accept?: string): Promise<MetricsText>;
}

const readinessSchema = z
  .object({ status: z.enum(["ready", "not ready"]), checks: z.record(z.string(), z.string()).optional() })
  .meta({ id: "Readiness" });

/** Routes of health and probes. */
export function probeRoutes(faces: ProbeFaces): Route[] {
  return [
    route({
      method: "GET",
      path: "/health",
      aliases: ["/healthz"],
      id: "health",
      summary: "Health of the service: its grade, and each cause with a link to the screen that handles it",
      access: "open",
      answers: {
        200: {
          description:
            "Healthy, possibly with causes that need attention; or degraded: a part of the service cannot work",
          schema: healthSchema,
        },
        503: { description: "Unhealthy: nothing is delivered", schema: healthSchema },
      },
      handle: async () => {
        const health = await faces.health();
        return { status: health.status === "unhealthy" ? 503 : 200, body: health };
      },
    }),
    route({
      method: "GET",
      path: "/livez",
      id: "live",
      summary: "Liveness probe; checks no dependencies",
      access: "open",
      answers: { 200: { description: "The process is alive", schema: z.object({ status: z.literal("alive") }) } },
      handle: async () => ok({ status: "alive" }),
    }),
    route({
      method: "GET",
      path: "/readyz",
      aliases: ["/ready"],
      id: "ready",
      summary: "Readiness probe; checks the database and the loops, not the brokers",
      access: "open",
      query: z.object({ verbose: z.string().optional().describe("Include the checks also when the service is ready") }),
      answers: {
        200: { description: "The database answers, and the loops run", schema: readinessSchema },
        503: { description: "The database does not answer, or a loop has stopped", schema: readinessSchema },
      },
      handle: async ({ query }) => {
        const { isReady, checks } = await faces.readiness();
        const status = isReady ? "ready" : "not ready";
        const isDetailed = query.verbose !== undefined || !isReady;
        return { status: isReady ? 200 : 503, body: isDetailed ? { status, checks } : { status } };
      },
    }),
    metricsRoute(faces),
  ];
}

/** The route of the metrics. */
export function metricsRoute(faces: Pick<ProbeFaces, "metrics">): Route {
  return route({
    method: "GET",
    path: "/metrics",
    id: "metrics",
    summary: "Metrics for Prometheus",
    access: "open",
    answers: {
      200: {
        description: "OpenMetrics, or Prometheus text format where the Accept header prefers it",
        schema: null,
        contentType: ["application/openmetrics-text", "text/plain"],
      },
    },
    handle: async ({ headers }) => {
      const { accept } = headers;
      const { contentType, text } = await faces.metrics(typeof accept === "string" ? accept : undefined);
      return { status: 200, body: text, contentType };
    },
  });
}
