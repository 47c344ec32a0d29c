import { type FastifyInstance, fastify } from "fastify";
import { RelayError, reasonOf } from "../core/errors.ts";
import type { DatabaseState } from "./database-check.ts";
import type { Health } from "./health.ts";

/** What the server shows. Each is quick, whatever hangs behind it. */
export interface HttpFaces {
  health(): Promise<Health>;
  /** The database with the relay's schema. */
  readiness(): Promise<DatabaseState>;
  metrics(): Promise<{ readonly contentType: string; readonly text: string }>;
}

export interface HttpServer {
  /** With the port that was really taken. */
  readonly address: string;
  close(): Promise<void>;
}

/** Listens before anything else of the service starts. Throws CONFIG_INVALID when the place is taken or not ours. */
export async function startHttpServer(
  faces: HttpFaces,
  { host, port }: { host: string; port: number },
): Promise<HttpServer> {
  // Clients that keep their connections must not keep the process.
  const server = fastify({ forceCloseConnections: true });
  addRoutes(server, faces);
  try {
    const address = await server.listen({ host, port });
    return { address, close: () => server.close() };
  } catch (error) {
    await server.close();
    throw new RelayError("CONFIG_INVALID", whyNot(error, host, port));
  }
}

function addRoutes(server: FastifyInstance, faces: HttpFaces): void {
  for (const path of ["/health", "/healthz"]) {
    server.get(path, async (_request, reply) => {
      const health = await faces.health();
      return reply
        .code(health.status === "unhealthy" ? 503 : 200)
        .header("cache-control", "no-store")
        .send(health);
    });
  }
  server.get("/livez", async (_request, reply) => reply.header("cache-control", "no-store").send({ status: "alive" }));
  server.get("/readyz", async (request, reply) => {
    const { answers, reason } = await faces.readiness();
    const status = answers ? "ready" : "not ready";
    const isVerbose = Object.hasOwn(request.query as object, "verbose");
    const checks = { database: answers ? "ok" : (reason ?? "it does not answer") };
    const body = isVerbose || !answers ? { status, checks } : { status };
    return reply
      .code(answers ? 200 : 503)
      .header("cache-control", "no-store")
      .send(body);
  });
  server.get("/metrics", async (_request, reply) => {
    const { contentType, text } = await faces.metrics();
    return reply.header("content-type", contentType).send(text);
  });
  server.setNotFoundHandler((request, reply) =>
    reply
      .code(404)
      .send({ error: { code: "NOT_FOUND", message: `There is nothing at ${request.method} ${request.url}` } }),
  );
  server.setErrorHandler((error, _request, reply) => {
    const status = (error as { readonly statusCode?: number }).statusCode ?? 500;
    const code = status < 500 ? "BAD_REQUEST" : "INTERNAL";
    return reply.code(status).send({ error: { code, message: reasonOf(error) } });
  });
}

function whyNot(error: unknown, host: string, port: number): string {
  const code = (error as { readonly code?: string }).code;
  if (code === "EADDRINUSE")
    return `PORT ${port} on ${host} is in use: set PORT to a free one, or stop what listens there.`;
  if (code === "EACCES") return `PORT ${port} needs more rights than this user has: set PORT to one above 1023.`;
  if (code === "EADDRNOTAVAIL" || code === "ENOTFOUND") return `HOST ${host} is no address of this machine.`;
  return `The HTTP server cannot listen on ${host}:${port}: ${reasonOf(error)}.`;
}
