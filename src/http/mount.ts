import { Readable } from "node:stream";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { z } from "zod";
import { type AccessRules, requireAccess } from "./guard.ts";
import { errorAnswer, HttpError } from "./http-error.ts";
import { hasRole, type Identity } from "./identity.ts";
import type { Answer, Route } from "./route.ts";

declare module "fastify" {
  interface FastifyContextConfig {
    /** Without it a route is for administrators. */
    access?: Route["access"];
  }
  interface FastifyRequest {
    /** Set by the guard. */
    identity: Identity | null;
  }
}

const NOBODY: Identity = { name: "nobody", role: "viewer", maySeePayloads: false, via: "api" };

/** A page may load and ask what this server has, and nothing else; it may not be put into another one's frame. */
const SECURITY_HEADERS: Readonly<Record<string, string>> = {
  "x-content-type-options": "nosniff",
  "content-security-policy": "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
  "referrer-policy": "no-referrer",
  "cache-control": "no-store",
};

/** Every route that is not open is guarded, whoever adds it. */
export function addGuard(server: FastifyInstance, rules: () => AccessRules): void {
  server.decorateRequest("identity", null);
  server.addHook("onRequest", async (request) => {
    const { access = "admin" } = request.routeOptions.config;
    if (request.is404 || access === "open") return;
    const identity = requireAccess(rules(), request);
    request.identity = identity;
    if (!hasRole(identity, access)) {
      throw new HttpError(
        403,
        "ROLE_MISSING",
        `This needs the role ${access}, and ${identity.name} is ${identity.role}.`,
      );
    }
  });
}

export function addHeaders(server: FastifyInstance): void {
  server.addHook("onSend", async (_request, reply, payload) => {
    for (const [name, value] of Object.entries(SECURITY_HEADERS)) {
      if (!reply.hasHeader(name)) reply.header(name, value);
    }
    return payload;
  });
}

export function addRoutes(server: FastifyInstance, routes: readonly Route[]): void {
  for (const route of routes) {
    for (const path of [route.path, ...route.aliases]) {
      server.route({
        method: route.method,
        url: path.replaceAll(/\{(\w+)\}/g, ":$1"),
        config: { access: route.access },
        handler: async (request, reply) => await send(reply, await route.handle(inputOf(route, request))),
      });
    }
  }
}

function inputOf({ params, query, body }: Route, request: FastifyRequest) {
  return {
    params: checked("path", params, request.params),
    query: checked("query", query, request.query),
    body: checked("body", body, request.body ?? {}),
    headers: request.headers,
    identity: request.identity ?? NOBODY,
    signal: whenGone(request),
  };
}

function whenGone({ raw }: FastifyRequest): AbortSignal {
  const gone = new AbortController();
  raw.socket.once("close", () => gone.abort());
  return gone.signal;
}

function checked(part: string, schema: z.ZodObject | null, value: unknown): unknown {
  if (schema === null) return value;
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const problems = result.error.issues.map(({ path, message }) => `${path.join(".") || part}: ${message}`);
  throw new HttpError(400, "BAD_REQUEST", `The ${part} is not as it should be: ${problems.join("; ")}`);
}

function send(reply: FastifyReply, { status, body, contentType, headers = {} }: Answer): FastifyReply {
  if (contentType !== undefined) reply.header("content-type", contentType);
  const isStream = typeof body === "object" && body !== null && Symbol.asyncIterator in body;
  return reply
    .code(status)
    .headers(headers)
    .send(isStream ? Readable.from(body as AsyncIterable<string | Buffer>) : body);
}

/** One form for whatever goes wrong. What servers said is quoted in it, hence `redact`. */
export function addRefusals(
  server: FastifyInstance,
  routes: readonly Route[],
  redact: (text: string) => string = (text) => text,
): void {
  server.setNotFoundHandler((request, reply) => {
    const path = request.url.split("?")[0] ?? "";
    const methods = routes.filter((route) => isAt(route, path)).map(({ method }) => method);
    if (methods.length === 0 || methods.includes(request.method as "GET")) {
      const fix = routes.some((route) => route.path === "/openapi.json")
        ? "/openapi.json lists what there is."
        : undefined;
      throw new HttpError(404, "NOT_FOUND", `There is nothing at ${request.method} ${path}`, fix);
    }
    reply.header("allow", methods.join(", "));
    throw new HttpError(
      405,
      "METHOD_NOT_ALLOWED",
      `${path} does not take ${request.method}, only ${methods.join(", ")}`,
    );
  });
  server.setErrorHandler((error, _request, reply) => {
    const { status, body } = errorAnswer(error);
    if (status === 401) reply.header("www-authenticate", 'Bearer realm="outbox-relay"');
    const message = redact(body.error.message);
    return reply.code(status).send({ error: { ...body.error, message } });
  });
}

function isAt({ path, aliases }: Route, asked: string): boolean {
  const parts = asked.split("/");
  return [path, ...aliases].some((it) => {
    const wanted = it.split("/");
    return wanted.length === parts.length && wanted.every((part, at) => part.startsWith("{") || part === parts[at]);
  });
}
