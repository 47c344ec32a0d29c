import type { IncomingHttpHeaders } from "node:http";
import type { z } from "zod";
import type { Identity, Role } from "./identity.ts";

/** What a handler is given, checked by the route's schemas. */
interface RouteInput<Params, Query, Body> {
  readonly params: Params;
  readonly query: Query;
  readonly body: Body;
  readonly headers: IncomingHttpHeaders;
  /** Of whoever holds the other end of the connection. */
  readonly address: string;
  /** Why it is not taken for a request of the person who runs the service; null where it is. */
  readonly foreign: string | null;
  /** Of an open route: whoever it is, with the least rights. */
  readonly identity: Identity;
  /** Aborted when the caller has gone. */
  readonly signal: AbortSignal;
}

export interface Answer {
  readonly status: number;
  /** Sent as JSON, unless there is another type. An async iterable is sent piece by piece. */
  readonly body: unknown;
  readonly contentType?: string;
  readonly headers?: Readonly<Record<string, string | string[]>>;
}

export interface DocumentedAnswer {
  readonly description: string;
  /** Of the JSON; null for an answer of another type, or without one. */
  readonly schema: z.ZodType | null;
  /** Several where the caller's Accept header chooses. */
  readonly contentType?: string | readonly string[];
}

/** One address of the server. The server is built from these, and so is the OpenAPI document. */
export interface Route {
  readonly method: "GET" | "POST";
  /** With parameters in braces, as OpenAPI writes them. */
  readonly path: string;
  /** Other addresses of the same. */
  readonly aliases: readonly string[];
  readonly id: string;
  readonly summary: string;
  /** `open` for everybody, else the least role that may. */
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

/** The handler sees the types of the schemas; whoever keeps a list of routes does not need them. */
export function route<Params extends z.ZodObject, Query extends z.ZodObject, Body extends z.ZodObject>(
  spec: RouteSpec<Params, Query, Body>,
): Route {
  const { aliases = [], params = null, query = null, body = null } = spec;
  const handle = spec.handle as Route["handle"];
  return { ...spec, aliases, params, query, body, handle };
}

export function ok(body: unknown): Answer {
  return { status: 200, body };
}

/** One message of a stream of server-sent events. */
export interface ServerSentEvent {
  readonly event: string;
  readonly data: unknown;
}

const HEARTBEAT_MS = 15_000;

/** Server-sent events until the caller goes or the source ends. A comment now and then keeps proxies from hanging up. */
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
        yield ": still here\n\n";
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
