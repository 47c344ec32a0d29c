import { Readable } from "node:stream";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { z } from "zod";
import { foreignOf } from "./auth/foreign.ts";
import { askerOf } from "./auth/limits.ts";
import type { Asking, Caller, Guard } from "./guard.ts";
import { HttpError } from "./http-error.ts";
import type { Identity } from "./identity.ts";
import type { Answer, Route } from "./route.ts";

declare module "fastify" {
  interface FastifyContextConfig {
    /** Without it a route is for administrators. */
    access?: Route["access"];
  }
  interface FastifyRequest {
    /** Set by the guard. */
    identity: Caller | null;
    foreign: string | null;
    isWelcome: (() => boolean) | null;
  }
}

const NOBODY: Identity = { name: "nobody", role: "viewer", maySeePayloads: false, via: "api" };

/**
 * A page may load and ask what this server has, and nothing else: what an event holds cannot become a script or a style
 * wherever it is shown. It may not be put into another one's frame.
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

/** Every route that is not open is guarded, whoever adds it. */
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
        handler: async (request, reply) => await send(reply, await route.handle(inputOf(route, request, reply))),
      });
    }
  }
}

function inputOf({ params, query, body }: Route, request: FastifyRequest, reply: FastifyReply) {
  return {
    params: checked("path", params, request.params),
    query: checked("query", query, request.query),
    body: checked("body", body, request.body ?? {}),
    headers: request.headers,
    address: request.ip,
    foreign: request.foreign,
    identity: request.identity ?? NOBODY,
    signal: whenGone(request, reply),
  };
}

const WELCOME_LOOK_MS = 2_000;

/** A stream ends soon after the session or the token that asked for it. */
function whenGone({ isWelcome }: FastifyRequest, { raw }: FastifyReply): AbortSignal {
  const gone = new AbortController();
  const end = () => gone.abort();
  const timer = setInterval(() => {
    if (isWelcome !== null && !isWelcome()) end();
  }, WELCOME_LOOK_MS);
  raw.once("close", () => {
    clearInterval(timer);
    end();
  });
  return gone.signal;
}

const PROBLEMS_TOLD_MAX = 10;

function checked(part: string, schema: z.ZodObject | null, value: unknown): unknown {
  if (schema === null) return value;
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const { issues } = result.error;
  const problems = issues
    .slice(0, PROBLEMS_TOLD_MAX)
    .map(({ path, message }) => `${path.join(".") || part}: ${message}`);
  throw new HttpError(400, "BAD_REQUEST", `The ${part} is not as it should be: ${problems.join("; ")}`);
}

function send(reply: FastifyReply, { status, body, contentType, headers = {} }: Answer): FastifyReply {
  if (contentType !== undefined) reply.header("content-type", contentType);
  reply.code(status).headers(headers);
  if (typeof body !== "object" || body === null || !(Symbol.asyncIterator in body)) return reply.send(body);
  // Whoever asks for the headers alone would otherwise be sent a stream that nobody ends.
  if (reply.request.method === "HEAD") return reply.send();
  return reply.send(Readable.from(body as AsyncIterable<string | Buffer>));
}
