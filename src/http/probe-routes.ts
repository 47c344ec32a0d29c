import { z } from "zod";
import type { MetricsText } from "../telemetry/metrics-text.ts";
import type { Health, Readiness } from "./health.ts";
import { ok, type Route, route } from "./route.ts";

/** What says how the service is, to everybody. Each is quick, whatever hangs behind it. */
export interface ProbeFaces {
  health(): Promise<Health>;
  /** Whether it can work: the database with the relay's schema answers, and the loops turn. */
  readiness(): Promise<Readiness>;
  /** In the format that this Accept header asks for. */
  metrics(accept?: string): Promise<MetricsText>;
}

const problemSchema = z.object({
  part: z.enum(["database", "source", "destination", "relay"]),
  name: z.string(),
  reason: z.string(),
});

const healthSchema = z
  .object({
    status: z.enum(["healthy", "degraded", "unhealthy"]),
    service: z.string(),
    timestamp: z.iso.datetime(),
    uptime: z.number().describe("In seconds"),
    lastPollTime: z.iso.datetime().nullable(),
    unpublishedEventCount: z.int().nullable().describe("Exact to 10,000; null while nobody could count"),
    isEstimate: z.literal(true).optional(),
    problems: z.array(problemSchema).optional(),
  })
  .meta({ id: "Health" });

const readinessSchema = z
  .object({ status: z.enum(["ready", "not ready"]), checks: z.record(z.string(), z.string()).optional() })
  .meta({ id: "Readiness" });

export function probeRoutes(faces: ProbeFaces): Route[] {
  return [
    route({
      method: "GET",
      path: "/health",
      aliases: ["/healthz"],
      id: "health",
      summary: "How the service is, in numbers and reasons",
      access: "open",
      answers: {
        200: { description: "Healthy, or degraded: a part of it cannot work", schema: healthSchema },
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
      summary: "Whether the process lives; asks nobody",
      access: "open",
      answers: { 200: { description: "It does", schema: z.object({ status: z.literal("alive") }) } },
      handle: async () => ok({ status: "alive" }),
    }),
    route({
      method: "GET",
      path: "/readyz",
      aliases: ["/ready"],
      id: "ready",
      summary: "Whether the service can work; a broker that is down does not count",
      access: "open",
      query: z.object({ verbose: z.string().optional().describe("Name the checks also when all is well") }),
      answers: {
        200: { description: "The database answers, and the loops turn", schema: readinessSchema },
        503: { description: "One of the two is not so", schema: readinessSchema },
      },
      handle: async ({ query }) => {
        const { isReady, checks } = await faces.readiness();
        const status = isReady ? "ready" : "not ready";
        const isTold = query.verbose !== undefined || !isReady;
        return { status: isReady ? 200 : 503, body: isTold ? { status, checks } : { status } };
      },
    }),
    metricsRoute(faces),
  ];
}

export function metricsRoute(faces: Pick<ProbeFaces, "metrics">): Route {
  return route({
    method: "GET",
    path: "/metrics",
    id: "metrics",
    summary: "Metrics for Prometheus",
    access: "open",
    answers: {
      200: {
        description: "OpenMetrics, or the older text format where that is asked for",
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
