import { readFile } from "node:fs/promises";
import { request as httpRequest } from "node:http";
import { type FastifyInstance, type FastifyReply, type FastifyRequest, fastify } from "fastify";
import { z } from "zod";
import { EXIT, Exit } from "../cli/exit.ts";
import { reasonOf } from "../core/errors.ts";
import type { LiveState } from "./live-state.ts";
import { faultSchema, type Switchboard, Unavailable } from "./switchboard.ts";

interface DevServerOptions {
  readonly live: LiveState;
  readonly switchboard: Switchboard;
  /** Of the relay's own HTTP server; null while there is none. */
  readonly relayPort: () => number | null;
}

const HOST = "127.0.0.1";
const PORTS_TRIED = 100;
const PAGE = { "/": ["index.html", "text/html"], "/dev/page.css": ["page.css", "text/css"] } as const;
const SCRIPTS = ["page.js", "charts.js"] as const;
const OF_THE_RELAY = ["/health", "/healthz", "/livez", "/ready", "/readyz", "/metrics", "/openapi.json", "/api/*"];

/** The page with what feeds it. What is the relay's own is passed on to the relay, and 503 while that is not there. */
export async function startDevServer(options: DevServerOptions, port: number) {
  const server = fastify({ forceCloseConnections: true });
  server.setErrorHandler((error, _request, reply) => {
    const status = error instanceof Unavailable ? 409 : ((error as { statusCode?: number }).statusCode ?? 500);
    return reply
      .code(status)
      .send({ error: { code: status === 409 ? "UNAVAILABLE" : "BAD_REQUEST", message: reasonOf(error) } });
  });
  guardAgainstStrangers(server);
  addPage(server);
  addFeed(server, options.live);
  addActions(server, options.switchboard);
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

/** Pages of other sites must not reach it through the browser, whatever name they give this machine. */
function guardAgainstStrangers(server: FastifyInstance): void {
  server.addHook("onRequest", async (request, reply) => {
    const name = (request.headers.host ?? "").replace(/:\d+$/, "");
    const isOurs = ["localhost", HOST].includes(name);
    const { origin } = request.headers;
    if (isOurs && (origin === undefined || origin === `http://${request.headers.host}`)) return;
    await reply.code(403).send({ error: { code: "FORBIDDEN", message: "Only pages of this server may ask." } });
  });
}

function addPage(server: FastifyInstance): void {
  const headers = {
    "content-security-policy":
      "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
  };
  const files: Record<string, readonly [file: string, type: string]> = { ...PAGE };
  for (const script of SCRIPTS) files[`/dev/${script}`] = [script, "text/javascript"];
  for (const [path, [file, type]] of Object.entries(files)) {
    server.get(path, async (_request, reply) =>
      reply
        .headers(headers)
        .type(`${type}; charset=utf-8`)
        .send(await readFile(new URL(`./page/${file}`, import.meta.url))),
    );
  }
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

const replaySchema = z.strictObject({ letterId: z.uuid() });

function addActions(server: FastifyInstance, switchboard: Switchboard): void {
  server.post("/dev/faults", async (request, reply) => {
    const asked = faultSchema.safeParse(request.body);
    if (!asked.success) return refuse(reply, asked.error);
    await switchboard.apply(asked.data);
    return { done: true };
  });
  server.post("/dev/replay", async (request, reply) => {
    const asked = replaySchema.safeParse(request.body);
    if (!asked.success) return refuse(reply, asked.error);
    await switchboard.replay(asked.data.letterId);
    return { done: true };
  });
}

function refuse(reply: FastifyReply, error: z.ZodError): FastifyReply {
  return reply.code(400).send({ error: { code: "BAD_REQUEST", message: z.prettifyError(error) } });
}

/** Request and answer pass through as they are, bodies unread. */
function passOn(scope: FastifyInstance, relayPort: () => number | null): void {
  scope.removeAllContentTypeParsers();
  scope.addContentTypeParser("*", (_request, _payload, done) => done(null));
  for (const path of OF_THE_RELAY) scope.all(path, (request, reply) => forward(request, reply, relayPort()));
}

function forward(request: FastifyRequest, reply: FastifyReply, port: number | null): void {
  reply.hijack();
  const { raw } = reply;
  const sayGone = () => {
    if (raw.headersSent) {
      raw.destroy();
      return;
    }
    raw.writeHead(503, { "content-type": "application/json", "cache-control": "no-store" });
    const message = "The relay's process is not running at this moment; a new one is about to start.";
    raw.end(JSON.stringify({ status: "unhealthy", error: { code: "RELAY_GONE", message } }));
  };
  if (port === null) {
    sayGone();
    return;
  }
  const { method, url } = request.raw;
  // Where it came from was looked at here; the relay would compare it with an address that is not the browser's.
  const { origin: _, ...headers } = request.raw.headers;
  const passed = httpRequest({ host: HOST, port, method, path: url, headers: { ...headers, host: `${HOST}:${port}` } });
  passed.once("response", (answer) => {
    raw.writeHead(answer.statusCode ?? 502, answer.headers);
    answer.pipe(raw);
    answer.once("error", () => raw.destroy());
  });
  passed.once("error", sayGone);
  raw.once("close", () => passed.destroy());
  request.raw.pipe(passed);
}
