import type { Socket } from "node:net";
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { HttpError, PROBLEM_TYPE, problemOf } from "./http-error.ts";
import { SECURITY_HEADERS } from "./mount.ts";
import type { Route } from "./route.ts";

/** Reports an error of our own, with the route where it happened. */
export type AnswerFailed = (at: string, error: unknown) => void;

/** Gives every error the same form. It may quote what servers answered, hence `redact`. */
export function addRefusals(
  server: FastifyInstance,
  routes: readonly Route[],
  redact: (text: string) => string = (text) => text,
  failed: AnswerFailed = () => {},
): void {
  // Before the body is parsed: an unknown address is reported before an invalid body.
  server.addHook("onRequest", async (request, reply) => {
    if (request.is404) throw nothingHere(routes, request, reply);
  });
  server.setErrorHandler((error, request, reply) => {
    refuse(reply, error, redact);
    if (reply.statusCode === 500) failed(`${request.method} ${request.routeOptions.url ?? ""}`, error);
  });
}

function refuse(reply: FastifyReply, error: unknown, redact?: (text: string) => string): FastifyReply {
  const problem = problemOf(error, redact);
  if (problem.status === 401) reply.header("www-authenticate", 'Bearer realm="outbox-relay"');
  if (error instanceof HttpError) reply.headers(error.headers);
  return reply.code(problem.status).header("content-type", PROBLEM_TYPE).send(JSON.stringify(problem));
}

/** For errors before routing: an address that cannot be decoded, a request that is not HTTP. */
export const EARLY_REFUSALS = {
  frameworkErrors: (error: FastifyError, _request: FastifyRequest, reply: FastifyReply): void => {
    refuse(reply.headers(SECURITY_HEADERS), error);
  },
  clientErrorHandler: (error: NodeJS.ErrnoException, socket: Socket): void => {
    if (error.code === "ECONNRESET" || !socket.writable) {
      socket.destroy(error);
      return;
    }
    const [status, words, code] =
      error.code === "HPE_HEADER_OVERFLOW"
        ? [431, "Request Header Fields Too Large", "HEADERS_TOO_LARGE"]
        : [400, "Bad Request", "BAD_REQUEST"];
    const body = JSON.stringify(problemOf(new HttpError(Number(status), String(code), `${words}.`)));
    const head = `HTTP/1.1 ${status} ${words}\r\ncontent-type: ${PROBLEM_TYPE}\r\nconnection: close`;
    socket.end(`${head}\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
  },
};

function nothingHere(routes: readonly Route[], { method, url }: FastifyRequest, reply: FastifyReply): HttpError {
  const path = url.split("?")[0] ?? "";
  const methods = methodsAt(routes, path);
  if (methods.length === 0 || methods.includes(method)) {
    const isDocumented = routes.some((route) => route.path === "/openapi.json");
    const fix = isDocumented ? "/openapi.json lists all routes." : undefined;
    return new HttpError(404, "NOT_FOUND", `No route ${method} ${path}`, { fix });
  }
  reply.header("allow", methods.join(", "));
  return new HttpError(405, "METHOD_NOT_ALLOWED", `${path} does not support ${method}, only ${methods.join(", ")}`);
}

/** A literal path has priority over one with a parameter. */
function methodsAt(routes: readonly Route[], asked: string): string[] {
  const places = routes.flatMap(({ aliases, method, path }) => [path, ...aliases].map((at) => ({ at, method })));
  const exact = places.filter(({ at }) => at === asked);
  const fitting = exact.length > 0 ? exact : places.filter(({ at }) => fits(at, asked));
  return [...new Set(fitting.map(({ method }) => method))];
}

function fits(path: string, asked: string): boolean {
  const parts = asked.split("/");
  const wanted = path.split("/");
  return wanted.length === parts.length && wanted.every((part, at) => part.startsWith("{") || part === parts[at]);
}
