import type { z } from "zod";

/** What a handler is given, checked by the route's schemas. */
interface RouteInput<Params, Query, Body> {
  readonly params: Params;
  readonly query: Query;
  readonly body: Body;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

export interface Answer {
  readonly status: number;
  /** Sent as JSON, unless there is another type. */
  readonly body: unknown;
  readonly contentType?: string;
}

export interface DocumentedAnswer {
  readonly description: string;
  /** Of the JSON; null for an answer of another type. */
  readonly schema: z.ZodType | null;
  readonly contentType?: string;
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
  /** `open` for everybody; `api` for those who may see events and change things. */
  readonly access: "open" | "api";
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
