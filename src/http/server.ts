import { type FastifyInstance, fastify } from "fastify";
import type { AccessConfig } from "../config/access-config.ts";
import { systemClock } from "../core/clock.ts";
import { RelayError, reasonOf } from "../core/errors.ts";
import type { OperationTarget } from "../operations/event-source.ts";
import { auditRoute } from "./audit-routes.ts";
import { EndedSessions } from "./auth/ended-sessions.ts";
import { LoginNotes } from "./auth/login-notes.ts";
import { consoleRoutes } from "./console-routes.ts";
import { deadLetterRoutes } from "./dead-letter-routes.ts";
import { editRoute } from "./edit-route.ts";
import { eventRoutes } from "./event-routes.ts";
import { Guard } from "./guard.ts";
import { viaOf } from "./identity.ts";
import { keyRoutes } from "./key-routes.ts";
import { addGuard, addHeaders, addRoutes } from "./mount.ts";
import { openApiRoute } from "./openapi.ts";
import { type OverviewFaces, overviewRoutes } from "./overview-routes.ts";
import { pipelineRoutes } from "./pipeline-routes.ts";
import { metricsRoute, type ProbeFaces, probeRoutes } from "./probe-routes.ts";
import { type AnswerFailed, addRefusals, EARLY_REFUSALS } from "./refusals.ts";
import { replayRoutes } from "./replay-routes.ts";
import type { Route } from "./route.ts";
import { type ServiceFaces, serviceRoutes } from "./service-routes.ts";
import { type SessionParts, sessionRoutes } from "./session-routes.ts";

/** What the server shows. */
export interface HttpFaces extends ProbeFaces, OverviewFaces, ServiceFaces {
  /** Where the API works: connections of its own, so that no question ever keeps a delivery waiting. */
  operations(): OperationTarget;
  /** Who may use API and console, by the settings of the moment. */
  access(): AccessConfig;
  /** Takes secrets out of what is told. */
  redact(text: string): string;
}

interface HttpOptions {
  readonly host: string;
  readonly port: number;
  readonly service: string;
  readonly version: string;
  readonly failed?: AnswerFailed;
  /** Hears why a request was not let in although the API is open on this machine. */
  readonly closed?: (why: string) => void;
}

export interface HttpServer {
  /** With the port that was really taken. */
  readonly address: string;
  close(): Promise<void>;
}

/** More than any question of the API needs. */
const BODY_BYTES_MAX = 1024 * 1024;
/** Keys and cursors of the greatest length stand in the address, and each of their letters may be three there. */
const HEADER_BYTES_MAX = 64 * 1024;
/** Until a request has come in as a whole. Answers may take as long as they like. */
const REQUEST_TIMEOUT_MS = 30_000;
/** The schemas say what is too long, so that the answer says it too. */
const PARAM_CHARACTERS_MAX = 16_000;

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
  const notes = new LoginNotes(systemClock, () => faces.operations());
  const guard = new Guard({
    host,
    access: () => faces.access(),
    clock: systemClock,
    refused: ({ address, headers }) => notes.refused(viaOf(headers), { address }),
    ended: new EndedSessions(systemClock, () => notes.ended()),
    closed: options.closed ?? (() => {}),
  });
  const routes = allRoutes(faces, options, { guard, notes });
  const server = bareServer(routes, (text) => faces.redact(text), options.failed);
  addGuard(server, guard);
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
function allRoutes(
  faces: HttpFaces,
  { service, version }: HttpOptions,
  watch: Pick<SessionParts, "guard" | "notes">,
): Route[] {
  const target = () => faces.operations();
  const routes: Route[] = [
    ...consoleRoutes((asking) => (watch.guard.modeFor(asking) === "off" ? watch.guard.apiOff(asking) : null)),
    ...probeRoutes(faces),
    ...sessionRoutes({ ...watch, clock: systemClock, service, version }),
    auditRoute(target),
    ...overviewRoutes(faces),
    ...serviceRoutes(faces, (text) => faces.redact(text)),
    ...pipelineRoutes(target),
    ...eventRoutes(target),
    ...deadLetterRoutes(target),
    editRoute(target),
    ...replayRoutes(target),
    ...keyRoutes(target),
  ];
  routes.push(openApiRoute(routes, version));
  return routes;
}

function bareServer(
  routes: readonly Route[],
  redact?: (text: string) => string,
  failed?: AnswerFailed,
): FastifyInstance {
  // Clients that keep their connections must not keep the process.
  const server = fastify({
    forceCloseConnections: true,
    bodyLimit: BODY_BYTES_MAX,
    http: { maxHeaderSize: HEADER_BYTES_MAX },
    requestTimeout: REQUEST_TIMEOUT_MS,
    routerOptions: { maxParamLength: PARAM_CHARACTERS_MAX },
    ...EARLY_REFUSALS,
  });
  // JSON alone: a form or a text is what another site's page could send without asking.
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
    return `${setting} ${port} on ${host} is in use: set ${setting} to a free one, or stop what listens there.`;
  if (code === "EACCES") return `${setting} ${port} needs more rights than this user has: set it to one above 1023.`;
  if (code === "EADDRNOTAVAIL" || code === "ENOTFOUND") return `HOST ${host} is no address of this machine.`;
  return `The HTTP server cannot listen on ${host}:${port}: ${reasonOf(error)}.`;
}
