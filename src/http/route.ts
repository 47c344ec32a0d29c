import type { IncomingHttpHeaders } from "node:http";
import type { z } from "zod";
import type { Identity, Role } from "./identity.ts";

/** The input of a handler, validated by the route's schemas. */
interface RouteInput<Params, Query, Body> {
  readonly params: Params;
  readonly query: Query;
  readonly body: Body;
  readonly headers: IncomingHttpHeaders;
  /** Address of the other end of the connection. */
  readonly address: string;
  /** Why the request is not trusted as one of the user who runs the service; null when it is trusted. */
  readonly foreign: string | null;
  /** On an open route: any caller, with the least rights. */
  readonly identity: Identity;
  /** Aborted when the client disconnects. */
  readonly signal: AbortSignal;
}

/** The response of a handler. */
export interface Answer {
  readonly status: number;
  /** Sent as JSON unless contentType says otherwise. An async iterable is streamed. */
  readonly body: unknown;
  readonly contentType?: string;
  readonly headers?: Readonly<Record<string, string | string[]>>;
}

/** A response as the OpenAPI document describes it. */
export interface DocumentedAnswer {
  readonly description: string;
  /** Schema of the JSON; null for other content types and for empty responses. */
  readonly schema: z.ZodType | null;
  /** Several where the Accept header chooses. */
  readonly contentType?: string | readonly string[];
}

/** One route of the server. Server and OpenAPI document are built from these. */
export interface Route {
  readonly method: "GET" | "POST";
  /** With parameters in braces, as in OpenAPI. */
  readonly path: string;
  /** Other addresses of the same route. */
  readonly aliases: readonly string[];
  readonly id: string;
  readonly summary: string;
  /** `open` for everyone, otherwise the least role that may call it. */
  readonly access: "open" | Role;
  readonly params: z.ZodObject | null;
  readonly query: z.ZodObject | null;
  readonly body: z.ZodObject | null;
  readonly answers: Readonly<Record<number, DocumentedAnswer>>;
  handle(input: RouteInput<unknown, unknown, unknown>): Promise<Answer>;
}

interface RouteSpec<Params extends z.ZodObject, Query extends z.ZodObject, Body extends z.ZodObject> {
  readonly method: Route["method"];
  readonly path: string;
  readonly aliases?: readonly string[];
  readonly id: string;
  readonly summary: string;
  readonly access: Route["access"];
  readonly params?: Params;
  readonly query?: Query;
  readonly body?: Body;
  readonly answers: Route["answers"];
  handle(input: RouteInput<z.output<Params>, z.output<Query>, z.output<Body>>): Promise<Answer>;
}

/** Gives the handler the types of the schemas and hides them from lists of routes. */
export function route<Params extends z.ZodObject, Query extends z.ZodObject, Body extends z.ZodObject>(
  spec: RouteSpec<Params, Query, Body>,
): Route {
  const { aliases = [], params = null, query = null, body = null } = spec;
  const handle = spec.handle as Route["handle"];
  return { ...spec, aliases, params, query, body, handle };
}

/** A JSON response with status 200. */
export function ok(body: unknown): Answer {
  return { status: 200, body };
}

/** One message of a stream of server-sent events. */
export interface ServerSentEvent {
  readonly event: string;
  readonly data: unknown;
}

const HEARTBEAT_MS = 15_000;

/**
 * Streams server-sent events until the client disconnects or the source ends. A regular comment keeps proxies from
 * closing the connection.
 */
export function eventStream(events: AsyncIterable<ServerSentEvent>): Answer {
  return { status: 200, body: written(events), contentType: "text/event-stream; charset=utf-8" };
}

async function* written(events: AsyncIterable<ServerSentEvent>): AsyncGenerator<string> {
  yield ": connected\n\n";
  const iterator = events[Symbol.asyncIterator]();
  try {
    let next = iterator.next();
    for (;;) {
      let timer: NodeJS.Timeout | undefined;
      const quiet = new Promise<null>((resolve) => {
        timer = setTimeout(resolve, HEARTBEAT_MS, null);
      });
      const result = await Promise.race([next, quiet]).finally(() => clearTimeout(timer));
      if (result === null) {
        yield ": keep-alive\n\n";
        continue;
      }
      if (result.done) return;
      const { event, data } = result.value;
      yield `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
      next = iterator.next();
    }
  } finally {
    await iterator.return?.();
  }
}
