import { z } from "zod";
import type { ApiOperations, CallOptions } from "../client/api-operations.ts";
import { RelayApiError } from "../client/relay-api-error.ts";
import { problemOf } from "../http/http-error.ts";
import type { Identity } from "../http/identity.ts";
import type { Route } from "../http/route.ts";

type Values = Readonly<Record<string, unknown>>;

/** Calls the handler of a route as the HTTP server does: with validated values, and with an answer that is JSON. */
export async function callRoute(
  route: Route,
  request: Values,
  { identity, signal }: CallOptions & { readonly identity: Identity },
): Promise<unknown> {
  signal?.throwIfAborted();
  try {
    const { body } = await route.handle({
      params: valuesOf(route.params, texts(request)),
      query: valuesOf(route.query, texts(request)),
      body: valuesOf(route.body, request),
      headers: {},
      address: "",
      foreign: null,
      identity,
      signal: signal ?? new AbortController().signal,
    });
    return JSON.parse(JSON.stringify(body));
  } catch (error) {
    throw failureOf(route.id as keyof ApiOperations, error);
  }
}

function valuesOf(schema: z.ZodObject | null, request: Values): unknown {
  if (schema === null) return {};
  const own = Object.entries(request).filter(([name, value]) => name in schema.shape && value !== undefined);
  return schema.parse(Object.fromEntries(own));
}

/** Paths and queries are text. */
function texts(request: Values): Values {
  const entries = Object.entries(request).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries.map(([name, value]) => [name, String(value)]));
}

function failureOf(operation: keyof ApiOperations, cause: unknown): RelayApiError {
  if (cause instanceof z.ZodError) {
    const facts = { operation, status: 400, code: "BAD_REQUEST", fix: null, cause };
    return new RelayApiError(`Invalid request: ${z.prettifyError(cause)}`, facts);
  }
  const { code, detail, fix = null, status } = problemOf(cause);
  return new RelayApiError(detail, { operation, status, code, fix, cause });
}
