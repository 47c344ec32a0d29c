import { type FastifyInstance, fastify } from "fastify";
import type { AccessConfig } from "../config/access-config.ts";
import { systemClock } from "../core/clock.ts";
import { RelayError, reasonOf } from "../core/errors.ts";
import type { OperationTarget } from "../operations/events/event-source.ts";
import { EndedSessions } from "./auth/ended-sessions.ts";
import { LoginNotes } from "./auth/login-notes.ts";
import { Guard } from "./guard.ts";
import { viaOf } from "./identity.ts";
import { addGuard, addHeaders, addRoutes } from "./mount.ts";
import { addDocument, openApiRoute } from "./openapi.ts";
import { type AnswerFailed, addRefusals, EARLY_REFUSALS } from "./refusals.ts";
import type { Route } from "./route.ts";
import { consoleRoutes } from "./routes/console-routes.ts";
import { operationRoutes } from "./routes/operation-routes.ts";
import { type OverviewFaces, overviewRoutes } from "./routes/overview-routes.ts";
import { metricsRoute, type ProbeFaces, probeRoutes } from "./routes/probe-routes.ts";
import { type ServiceFaces, serviceRoutes } from "./routes/service-routes.ts";
import { type SessionParts, sessionRoutes } from "./routes/session-routes.ts";
import { statsRoute } from "./routes/stats-route.ts";

/** What the server shows. */
export interface HttpFaces extends ProbeFaces, OverviewFaces, ServiceFaces {
  /** Connections of the API's own, so that no request delays a delivery. */
  operations(): OperationTarget;
  /** Access rules from the current settings. */
  access(): AccessConfig;
  /** Removes secrets from a text. */
  redact(text: string): string;
}

interface HttpOptions {
  readonly host: string;
  readonly port: number;
  readonly service: string;
  readonly version: string;
  readonly failed?: AnswerFailed;
  /** Called with the reason when a request is refused although the API is open on this machine. */
  readonly closed?: (why: string) => void;
}

/** A listening server. */
export interface HttpServer {
  /** With the actual port, also when port 0 was requested. */
  readonly address: string;
  close(): Promise<void>;
}

/** More than any request of the API needs. */
const BODY_BYTES_MAX = 1024 * 1024;
/** Keys and cursors are part of the address, where each character may take three when encoded. */
const HEADER_BYTES_MAX = 64 * 1024;
/** Until a request has arrived completely. Responses may take any time. */
const REQUEST_TIMEOUT_MS = 30_000;
/** The schemas have stricter limits, and name the parameter in their error. */
const PARAM_CHARACTERS_MAX = 16_000;

/**
 * Listens before any other part of the service starts. Throws CONFIG_INVALID when the port or host cannot be used.
 * `extend` may add routes; they are guarded like the API unless their config says `access: "open"`.
 */
export async function startHttpServer(
  faces: HttpFaces,
  options: HttpOptions,
  extend?: (server: FastifyInstance) => void,
): Promise<HttpServer> {
  const { host, port } = options;
  const notes = new LoginNotes(systemClock, () => faces.operations());
  const guard = new Guard({
    host,
    access: () => faces.access(),
    clock: systemClock,
    refused: ({ address, headers }) => notes.refused(viaOf(headers), { address }),
    ended: new EndedSessions(systemClock, () => notes.ended()),
    closed: options.closed ?? (() => {}),
  });
  const routes = allRoutes(faces, options, { guard, notes }, () => server.swagger());
  const server = bareServer(routes, (text) => faces.redact(text), options.failed);
  addGuard(server, guard);
  extend?.(server);
  await addDocument(server, options.version);
  addRoutes(
    server,
    routes.filter(({ method, path }) => !server.hasRoute({ method, url: path })),
  );
  return await listen(server, host, port, "PORT");
}

/** Serves only the metrics, on a port that only the scraper can reach. */
export async function startMetricsServer(
  faces: Pick<ProbeFaces, "metrics">,
  { host, port }: { readonly host: string; readonly port: number },
): Promise<HttpServer> {
  const routes = [metricsRoute(faces)];
  const server = bareServer(routes);
  addRoutes(server, routes);
  return await listen(server, host, port, "METRICS_PORT");
}

/** All routes except those that `extend` adds. A page of `extend` on / replaces the console's. */
function allRoutes(
  faces: HttpFaces,
  { service, version }: HttpOptions,
  watch: Pick<SessionParts, "guard" | "notes">,
  document: () => object,
): Route[] {
  const target = () => faces.operations();
  return [
    ...consoleRoutes((asking) => (watch.guard.modeFor(asking) === "off" ? watch.guard.apiOff(asking) : null)),
    ...probeRoutes(faces),
    statsRoute(faces),
    ...sessionRoutes({ ...watch, clock: systemClock, service, version }),
    ...overviewRoutes(faces),
    ...serviceRoutes(faces, (text) => faces.redact(text)),
    ...operationRoutes(target),
    openApiRoute(document),
  ];
}

function bareServer(
  routes: readonly Route[],
  redact?: (text: string) => string,
  failed?: AnswerFailed,
): FastifyInstance {
  // Idle keep-alive connections must not keep the process running.
  const server = fastify({
    forceCloseConnections: true,
    bodyLimit: BODY_BYTES_MAX,
    http: { maxHeaderSize: HEADER_BYTES_MAX },
    requestTimeout: REQUEST_TIMEOUT_MS,
    routerOptions: { maxParamLength: PARAM_CHARACTERS_MAX },
    ...EARLY_REFUSALS,
  });
  // Accepts JSON only: a page of another site can send a form or plain text without a preflight request.
  server.removeContentTypeParser("text/plain");
  addHeaders(server);
  addRefusals(server, routes, redact, failed);
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
    return `${setting} ${port} on ${host} is in use: set ${setting} to a free port, or stop the process that listens there.`;
  if (code === "EACCES") return `${setting} ${port} needs more rights than this user has: set it to a port above 1023.`;
  if (code === "EADDRNOTAVAIL" || code === "ENOTFOUND") return `HOST ${host} is not an address of this machine.`;
  return `The HTTP server cannot listen on ${host}:${port}: ${reasonOf(error)}.`;
}
