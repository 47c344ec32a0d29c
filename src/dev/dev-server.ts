import { type FastifyInstance, type FastifyReply, fastify } from "fastify";
import { z } from "zod";
import { reasonOf } from "../core/errors.ts";
import { foreignOf } from "../http/auth/foreign.ts";
import { HttpError, PROBLEM_TYPE, problemOf } from "../http/http-error.ts";
import { addHeaders, addRoutes } from "../http/mount.ts";
import { consoleRoutes } from "../http/routes/console-routes.ts";
import { EXIT, Exit } from "../service/exit.ts";
import { VERSION } from "../service/version.ts";
import type { LiveState } from "./live-state.ts";
import { passOn } from "./pass-on.ts";
import { DEMO_SERVICE } from "./relay-settings.ts";
import { faultSchema, type Switchboard, Unavailable } from "./switchboard.ts";

interface DevServerOptions {
  readonly live: LiveState;
  readonly switchboard: Switchboard;
  /** The port of the relay's HTTP server; null before the relay has one. */
  readonly relayPort: () => number | null;
}

const HOST = "127.0.0.1";
const PORTS_TRIED = 100;

/**
 * Serves the console, so that it survives a crash of the relay, and the endpoints of the demo panel. Requests for the relay
 * are forwarded to its process.
 */
export async function startDevServer(options: DevServerOptions, port: number) {
  const server = fastify({ forceCloseConnections: true });
  server.setErrorHandler((error, _request, reply) => {
    // Any other error is the effect of an active fault: writing a poison event needs the database, too.
    const status = error instanceof Unavailable ? 409 : ((error as { statusCode?: number }).statusCode ?? 503);
    return refuse(reply, new HttpError(status, status < 409 ? "BAD_REQUEST" : "UNAVAILABLE", reasonOf(error)));
  });
  rejectForeignRequests(server);
  addHeaders(server);
  addRoutes(
    server,
    consoleRoutes(() => null),
  );
  addSession(server);
  addFeed(server, options.live);
  addActions(server, options);
  await server.register(async (scope) => passOn(scope, options.relayPort));
  const taken = await listen(server, port);
  return { port: taken, address: `http://localhost:${taken}`, close: () => server.close() };
}

/** Listens on the first free port from `first` on. */
async function listen(server: FastifyInstance, first: number): Promise<number> {
  const last = Math.min(65_535, first + PORTS_TRIED);
  for (let port = first; ; port += 1) {
    try {
      await server.listen({ host: HOST, port });
      return port;
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if ((code === "EADDRINUSE" || code === "EACCES") && port < last) continue;
      await server.close();
      throw new Exit(EXIT.usage, [
        `No port from ${first} to ${port} is available: ${reasonOf(error)}`,
        "Choose another port with --port.",
      ]);
    }
  }
}

/** Rejects requests of other sites' pages (DNS rebinding included) and of proxies. */
function rejectForeignRequests(server: FastifyInstance): void {
  server.addHook("onRequest", async (request, reply) => {
    const name = (request.headers.host ?? "").replace(/:\d+$/, "");
    const isOurs = ["localhost", HOST].includes(name);
    const { origin } = request.headers;
    const isOwnPage = isOurs && (origin === undefined || origin === `http://${request.headers.host}`);
    const foreign = isOwnPage ? await foreignOf(request.raw) : null;
    if (isOwnPage && foreign === null) return;
    const what =
      foreign === null ? "Only pages of this server may send requests." : `The demo rejects this request: ${foreign}.`;
    await refuse(reply, new HttpError(403, "FORBIDDEN", what));
  });
}

/** Answered here, so that the console can load before the relay runs and while it is down. */
function addSession(server: FastifyInstance): void {
  const identity = { name: "local", by: "local", role: "admin", maySeePayloads: true, expiresAt: null };
  const session = { service: DEMO_SERVICE, version: VERSION, access: "open", logins: [], identity, isDemo: true };
  server.get("/api/v1/session", async (_request, reply) => reply.header("cache-control", "no-store").send(session));
}

function addFeed(server: FastifyInstance, live: LiveState): void {
  server.get("/dev/state", async (_request, reply) => reply.header("cache-control", "no-store").send(live.snapshot()));
  server.get("/dev/events", (request, reply) => {
    reply.hijack();
    const { raw } = reply;
    raw.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-store" });
    const send = (state: object) => {
      // A slow reader skips states: each one is complete.
      if (raw.writableLength === 0) raw.write(`data: ${JSON.stringify(state)}\n\n`);
    };
    send(live.snapshot());
    request.raw.once("close", live.watch(send));
  });
}

function addActions(server: FastifyInstance, { live, switchboard }: DevServerOptions): void {
  server.post("/dev/faults", async (request, reply) => {
    const asked = faultSchema.safeParse(request.body);
    if (!asked.success) return refuse(reply, new HttpError(400, "BAD_REQUEST", z.prettifyError(asked.error)));
    await switchboard.apply(asked.data);
    live.publish();
    return live.snapshot();
  });
}

function refuse(reply: FastifyReply, error: HttpError): FastifyReply {
  return reply.code(error.status).type(PROBLEM_TYPE).send(problemOf(error));
}
