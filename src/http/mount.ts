import { Readable } from "node:stream";
import type { FastifyInstance, FastifyReply, FastifyRequest, FastifySchemaValidationError } from "fastify";
import { validatorCompiler } from "fastify-type-provider-zod";
import { foreignOf } from "./auth/foreign.ts";
import { askerOf } from "./auth/limits.ts";
import type { Asking, Caller, Guard } from "./guard.ts";
import { HttpError } from "./http-error.ts";
import type { Identity } from "./identity.ts";
import { schemaOf } from "./openapi.ts";
import type { Answer, Route } from "./route.ts";

declare module "fastify" {
  interface FastifyContextConfig {
    /** A route without it is for administrators. */
    access?: Route["access"];
  }
  interface FastifyRequest {
    /** Set by the guard. */
    identity: Caller | null;
    foreign: string | null;
    /** Undefined on a server without a guard: the demo has none. */
    isWelcome: (() => boolean) | null | undefined;
  }
}

const ANONYMOUS: Identity = { name: "nobody", role: "viewer", maySeePayloads: false, via: "api" };

/**
 * A page may load only files and data of this server: content of an event cannot become a script or a style wherever it
 * is shown. Other sites must not frame it.
 */
const PAGE_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self' data:",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
];

/** Headers of every response. */
export const SECURITY_HEADERS: Readonly<Record<string, string>> = {
  "x-content-type-options": "nosniff",
  "content-security-policy": PAGE_POLICY.join("; "),
  "referrer-policy": "no-referrer",
  "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "x-frame-options": "DENY",
  "cache-control": "no-store",
};

/** Guards every route that is not declared open, also those that others add. */
export function addGuard(server: FastifyInstance, guard: Guard): void {
  server.decorateRequest("identity", null);
  server.decorateRequest("foreign", null);
  server.decorateRequest("isWelcome", null);
  server.addHook("onRequest", async (request, reply) => {
    const { access = "admin" } = request.routeOptions.config;
    if (request.is404) return;
    guard.requireOwnPage(request);
    if (guard.mode === "open") request.foreign = await foreignOf(request.raw);
    if (access === "open") {
      if (request.url.startsWith("/api/") && guard.mode !== "open") guard.slow(`address:${askerOf(request.ip)}`);
      return;
    }
    await guard.prepare(request.headers);
    const asking = askingOf(request);
    const caller = guard.admit(asking, access);
    request.identity = caller;
    request.isWelcome = () => guard.isWelcome(asking);
    reply.raw.once("close", guard.enter(caller));
  });
}

function askingOf({ foreign, headers, ip, method }: FastifyRequest): Asking {
  return { method, headers, address: ip, foreign };
}

/** Adds the security headers to every response. */
export function addHeaders(server: FastifyInstance): void {
  server.addHook("onSend", async (_request, reply, payload) => {
    for (const [name, value] of Object.entries(SECURITY_HEADERS)) {
      if (!reply.hasHeader(name)) reply.header(name, value);
    }
    return payload;
  });
}

/** Adds the routes with their schemas. */
export function addRoutes(server: FastifyInstance, routes: readonly Route[]): void {
  server.setValidatorCompiler(validatorCompiler);
  server.setSchemaErrorFormatter(badRequest);
  // TypeScript checks responses against their schemas; validating each one at run time would cost as much as producing
  // it.
  server.setSerializerCompiler(() => (answer) => JSON.stringify(answer));
  for (const route of routes) {
    for (const [index, path] of [route.path, ...route.aliases].entries()) {
      server.route({
        method: route.method,
        url: path.replaceAll(/\{(\w+)\}/g, ":$1"),
        config: { access: route.access },
        schema: schemaOf(route, index),
        preValidation: async (request) => {
          request.body ??= {};
        },
        handler: async (request, reply) => await send(reply, await route.handle(inputOf(request, reply))),
      });
    }
  }
}

function inputOf(request: FastifyRequest, reply: FastifyReply) {
  const { body, foreign, headers, identity, ip, params, query } = request;
  const signal = whenGone(request, reply);
  return { params, query, body, headers, address: ip, foreign, identity: identity ?? ANONYMOUS, signal };
}

const WELCOME_LOOK_MS = 2_000;

/** A stream ends soon after its session or token is revoked. */
function whenGone({ isWelcome }: FastifyRequest, { raw }: FastifyReply): AbortSignal {
  const gone = new AbortController();
  const end = () => gone.abort();
  const timer = setInterval(() => {
    if (isWelcome?.() === false) end();
  }, WELCOME_LOOK_MS);
  raw.once("close", () => {
    clearInterval(timer);
    end();
  });
  return gone.signal;
}

const PROBLEMS_MAX = 10;

function badRequest(errors: readonly FastifySchemaValidationError[], place: string): HttpError {
  const part = place === "params" ? "path" : place.replace("string", "");
  const problems = errors
    .slice(0, PROBLEMS_MAX)
    .map(({ instancePath, message }) => `${instancePath.slice(1).replaceAll("/", ".") || part}: ${message}`);
  return new HttpError(400, "BAD_REQUEST", `Invalid ${part}: ${problems.join("; ")}`);
}

function send(reply: FastifyReply, { status, body, contentType, headers = {} }: Answer): FastifyReply {
  if (contentType !== undefined) reply.header("content-type", contentType);
  reply.code(status).headers(headers);
  if (typeof body !== "object" || body === null || !(Symbol.asyncIterator in body)) return reply.send(body);
  // A HEAD request would otherwise open a stream that no client reads to its end.
  if (reply.request.method === "HEAD") return reply.send();
  return reply.send(Readable.from(body as AsyncIterable<string | Buffer>));
}
