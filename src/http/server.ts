import { type FastifyInstance, fastify } from "fastify";
import { RelayError, reasonOf } from "../core/errors.ts";
import type { OperationTarget } from "../operations/event-source.ts";
import { deadLetterRoutes } from "./dead-letter-routes.ts";
import { eventRoutes } from "./event-routes.ts";
import { homeRoute } from "./home-page.ts";
import { addGuard, addHeaders, addRefusals, addRoutes } from "./mount.ts";
import { openApiRoute } from "./openapi.ts";
import { pipelineRoutes } from "./pipeline-routes.ts";
import { metricsRoute, type ProbeFaces, probeRoutes } from "./probe-routes.ts";
import type { Route } from "./route.ts";

/** What the server shows. */
export interface HttpFaces extends ProbeFaces {
  /** Where the API works: connections of its own, so that no question ever keeps a delivery waiting. */
  operations(): OperationTarget;
  /** The one of the moment; null where none is set. */
  adminToken(): string | null;
  /** Takes secrets out of what is told. */
  redact(text: string): string;
}

interface HttpOptions {
  readonly host: string;
  readonly port: number;
  readonly service: string;
  readonly version: string;
}

export interface HttpServer {
  /** With the port that was really taken. */
  readonly address: string;
  close(): Promise<void>;
}

/** More than any question of the API needs. */
const BODY_BYTES_MAX = 1024 * 1024;

/**
 * Listens before anything else of the service starts. Throws CONFIG_INVALID when the place is taken or not ours.
 * `extend` may add routes; they are guarded like the API unless their config says `access: "open"`.
 */
export async function startHttpServer(
  faces: HttpFaces,
  options: HttpOptions,
  extend?: (server: FastifyInstance) => void,
): Promise<HttpServer> {
  const { host, port } = options;
  const routes = serviceRoutes(faces, options);
  const server = bareServer(routes, (text) => faces.redact(text));
  addGuard(server, () => ({ host, adminToken: faces.adminToken() }));
  extend?.(server);
  addRoutes(
    server,
    routes.filter(({ method, path }) => !server.hasRoute({ method, url: path })),
  );
  return await listen(server, host, port, "PORT");
}

/** The metrics alone, for a port that only the scraper can reach. */
export async function startMetricsServer(
  faces: Pick<ProbeFaces, "metrics">,
  { host, port }: { readonly host: string; readonly port: number },
): Promise<HttpServer> {
  const routes = [metricsRoute(faces)];
  const server = bareServer(routes);
  addRoutes(server, routes);
  return await listen(server, host, port, "METRICS_PORT");
}

/** All but what others add. A page of theirs on / takes the place of ours. */
function serviceRoutes(faces: HttpFaces, { service, version }: HttpOptions): Route[] {
  const target = () => faces.operations();
  const routes: Route[] = [
    homeRoute(service, version, () => routes),
    ...probeRoutes(faces),
    ...pipelineRoutes(target),
    ...eventRoutes(target),
    ...deadLetterRoutes(target),
  ];
  routes.push(openApiRoute(routes, version));
  return routes;
}

function bareServer(routes: readonly Route[], redact?: (text: string) => string): FastifyInstance {
  // Clients that keep their connections must not keep the process.
  const server = fastify({ forceCloseConnections: true, bodyLimit: BODY_BYTES_MAX });
  // JSON alone: a form or a text is what another site's page could send without asking.
  server.removeContentTypeParser("text/plain");
  addHeaders(server);
  addRefusals(server, routes, redact);
  return server;
}

async function listen(server: FastifyInstance, host: string, port: number, setting: string): Promise<HttpServer> {
  try {
    const address = await server.listen({ host, port });
    return { address, close: () => server.close() };
  } catch (error) {
    await server.close();
    throw new RelayError("CONFIG_INVALID", whyNot(error, host, port, setting));
  }
}

function whyNot(error: unknown, host: string, port: number, setting: string): string {
  const code = (error as { readonly code?: string }).code;
  if (code === "EADDRINUSE")
    return `${setting} ${port} on ${host} is in use: set ${setting} to a free one, or stop what listens there.`;
  if (code === "EACCES") return `${setting} ${port} needs more rights than this user has: set it to one above 1023.`;
  if (code === "EADDRNOTAVAIL" || code === "ENOTFOUND") return `HOST ${host} is no address of this machine.`;
  return `The HTTP server cannot listen on ${host}:${port}: ${reasonOf(error)}.`;
}
