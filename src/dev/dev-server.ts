import { type FastifyInstance, type FastifyReply, fastify } from "fastify";
import { z } from "zod";
import { EXIT, Exit } from "../cli/exit.ts";
import { VERSION } from "../cli/version.ts";
import { reasonOf } from "../core/errors.ts";
import { foreignOf } from "../http/auth/foreign.ts";
import { consoleRoutes } from "../http/console-routes.ts";
import { HttpError, PROBLEM_TYPE, problemOf } from "../http/http-error.ts";
import { addHeaders, addRoutes } from "../http/mount.ts";
import type { LiveState } from "./live-state.ts";
import { passOn } from "./pass-on.ts";
import { DEMO_SERVICE } from "./relay-settings.ts";
import { faultSchema, type Switchboard, Unavailable } from "./switchboard.ts";

interface DevServerOptions {
  readonly live: LiveState;
  readonly switchboard: Switchboard;
  /** Of the relay's own HTTP server; null while there is none. */
  readonly relayPort: () => number | null;
}

const HOST = "127.0.0.1";
const PORTS_TRIED = 100;

/**
 * The console, served from here so that it survives the relay's death, and what feeds the demo's part of it. What is the
 * relay's own is passed on.
 */
export async function startDevServer(options: DevServerOptions, port: number) {
  const server = fastify({ forceCloseConnections: true });
  server.setErrorHandler((error, _request, reply) => {
    // Whatever else goes wrong comes of a fault that is on: a poison event needs a database, too.
    const status = error instanceof Unavailable ? 409 : ((error as { statusCode?: number }).statusCode ?? 503);
    return refuse(reply, new HttpError(status, status < 409 ? "BAD_REQUEST" : "UNAVAILABLE", reasonOf(error)));
  });
  guardAgainstStrangers(server);
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

/** The next free one, when this one is taken. */
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
        `No port from ${first} to ${port} can be had: ${reasonOf(error)}`,
        "Choose another one with --port.",
      ]);
    }
  }
}

/** Pages of other sites must not reach it through the browser, whatever name they give this machine; nor may proxies. */
function guardAgainstStrangers(server: FastifyInstance): void {
  server.addHook("onRequest", async (request, reply) => {
    const name = (request.headers.host ?? "").replace(/:\d+$/, "");
    const isOurs = ["localhost", HOST].includes(name);
    const { origin } = request.headers;
    const isOwnPage = isOurs && (origin === undefined || origin === `http://${request.headers.host}`);
    const foreign = isOwnPage ? await foreignOf(request.raw) : null;
    if (isOwnPage && foreign === null) return;
    const what = foreign === null ? "Only pages of this server may ask." : `The demo refuses this request: ${foreign}.`;
    await refuse(reply, new HttpError(403, "FORBIDDEN", what));
  });
}

/** Answered here, so that the console knows what it is shown in before there is a relay, and while there is none. */
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
      // Whoever does not read gets the next one, not all of them.
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
    live.tell();
    return live.snapshot();
  });
}

function refuse(reply: FastifyReply, error: HttpError): FastifyReply {
  return reply.code(error.status).type(PROBLEM_TYPE).send(problemOf(error));
}
