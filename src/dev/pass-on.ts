import { request as httpRequest } from "node:http";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { HttpError, PROBLEM_TYPE, problemOf } from "../http/http-error.ts";

const HOST = "127.0.0.1";
const OF_THE_RELAY = [
  "/health",
  "/healthz",
  "/livez",
  "/ready",
  "/readyz",
  "/metrics",
  "/stats",
  "/openapi.json",
  "/api/*",
];

const GONE = new HttpError(
  503,
  "RELAY_GONE",
  "The relay's process is not running; a new one is about to start.",
  "Events wait in their tables. No action is needed.",
);

/**
 * Forwards requests to the relay's process, or answers 503 while it is down. Bodies and streams pass through unread and
 * unbuffered.
 */
export function passOn(scope: FastifyInstance, relayPort: () => number | null): void {
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
    raw.writeHead(503, { "content-type": PROBLEM_TYPE, "cache-control": "no-store" });
    raw.end(JSON.stringify(problemOf(GONE)));
  };
  if (port === null) {
    sayGone();
    return;
  }
  const { method, url } = request.raw;
  // The origin was checked here; the relay would compare it with the wrong host.
  const { origin: _, ...headers } = request.raw.headers;
  const passed = httpRequest({ host: HOST, port, method, path: url, headers: { ...headers, host: `${HOST}:${port}` } });
  passed.once("response", (answer) => {
    raw.writeHead(answer.statusCode ?? 502, answer.headers);
    // Send the headers now: the first chunk of a stream may come much later.
    raw.flushHeaders();
    answer.pipe(raw);
    answer.once("error", () => raw.destroy());
  });
  passed.once("error", sayGone);
  raw.once("close", () => passed.destroy());
  request.raw.pipe(passed);
}
