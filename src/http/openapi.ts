import { z } from "zod";
import { SESSION_COOKIE } from "./auth/session.ts";
import { errorSchema, PROBLEM_TYPE } from "./http-error.ts";
import { type DocumentedAnswer, ok, type Route, route } from "./route.ts";

type Json = Record<string, unknown>;

/** The address of the document itself is in it too. */
export function openApiRoute(routes: readonly Route[], version: string): Route {
  let document: Json | null = null;
  const own: Route = route({
    method: "GET",
    path: "/openapi.json",
    id: "openapi",
    summary: "This document",
    access: "open",
    answers: { 200: { description: "OpenAPI 3.1", schema: z.looseObject({ openapi: z.literal("3.1.1") }) } },
    handle: async () => {
      document ??= openApiDocument(listed, version);
      return ok(document);
    },
  });
  const listed = [...routes, own];
  return own;
}

/** Made from the routes that the server is made of, so that neither can be without the other. */
function openApiDocument(routes: readonly Route[], version: string): Json {
  const schemas = new SchemaBook();
  const paths: Record<string, Json> = {};
  for (const it of routes) {
    for (const [index, path] of [it.path, ...it.aliases].entries()) {
      const id = index === 0 ? it.id : `${it.id}${index + 1}`;
      paths[path] = { ...paths[path], [it.method.toLowerCase()]: operationOf(it, id, schemas) };
    }
  }
  return {
    openapi: "3.1.1",
    info: {
      title: "outbox-relay",
      version,
      description:
        "Health and metrics for everybody; the API for the user who runs the service, on its machine, or with a token or a session. " +
        "Each operation says in x-role which role it needs at least: viewer, operator or admin.",
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    paths,
    components: {
      schemas: schemas.all(),
      securitySchemes: {
        bearer: { type: "http", scheme: "bearer", description: "The ADMIN_TOKEN, or one of the API_TOKENS" },
        session: { type: "apiKey", in: "cookie", name: SESSION_COOKIE, description: "Of the console, by a login" },
      },
    },
  };
}

function operationOf(it: Route, id: string, schemas: SchemaBook): Json {
  return {
    operationId: id,
    summary: it.summary,
    ...(it.access === "open"
      ? { security: [] }
      : {
          description: `Needs the role ${it.access}.`,
          "x-role": it.access,
          security: [{ bearer: [] }, { session: [] }, {}],
        }),
    parameters: [...parametersOf("path", it.params, schemas), ...parametersOf("query", it.query, schemas)],
    ...(it.body === null ? {} : { requestBody: requestBodyOf(schemas.of(it.body, "input")) }),
    responses: Object.fromEntries(
      Object.entries({ ...refusalsOf(it), ...it.answers }).map(([status, answer]) => [
        status,
        answerOf(answer, schemas),
      ]),
    ),
  };
}

function requestBodyOf(schema: Json): Json {
  return { required: "required" in schema, content: { "application/json": { schema } } };
}

const problem = (description: string): DocumentedAnswer => ({ description, schema: errorSchema });

/** What the server answers by itself, before the handler or in its place. */
function refusalsOf({ access, body, method, params, path, query }: Route): Route["answers"] {
  const isChecked = params !== null || query !== null || body !== null || method === "POST";
  return {
    ...(isChecked || access !== "open" ? { 400: problem("The question is not as it should be") } : {}),
    ...(access !== "open" ? { 401: problem("Token or session are missing, wrong or expired") } : {}),
    ...(access !== "open" || method === "POST"
      ? { 403: problem("The role is not enough, the API is off here, or the request comes from another site") }
      : {}),
    ...(method === "POST" ? { 413: problem("The body is too large"), 415: problem("The body is no JSON") } : {}),
    ...(path.startsWith("/api/") ? { 429: problem("Too many requests: wait as long as Retry-After says") } : {}),
    ...(params === null && query === null ? {} : { 431: problem("The address is too long") }),
    ...(access !== "open" ? { 503: problem("The database cannot answer at present") } : {}),
  };
}

function answerOf({ description, schema, contentType }: DocumentedAnswer, schemas: SchemaBook): Json {
  if (schema === null && contentType === undefined) return { description };
  const content = schema === null ? { schema: { type: "string" } } : { schema: schemas.of(schema, "output") };
  const types = contentType ?? (schema === errorSchema ? PROBLEM_TYPE : "application/json");
  return { description, content: Object.fromEntries([types].flat().map((type) => [type, content])) };
}

function parametersOf(place: "path" | "query", schema: z.ZodObject | null, schemas: SchemaBook): Json[] {
  if (schema === null) return [];
  const { properties = {}, required = [] } = schemas.of(schema, "input") as {
    readonly properties?: Readonly<Record<string, Json>>;
    readonly required?: readonly string[];
  };
  return Object.entries(properties).map(([name, property]) => {
    const { description, ...type } = property;
    const isRequired = place === "path" || required.includes(name);
    return {
      name,
      in: place,
      required: isRequired,
      ...(description === undefined ? {} : { description }),
      schema: type,
    };
  });
}

/** Schemas with a name stand once, under the components; wherever else they occur they are referred to. */
class SchemaBook {
  readonly #named = new Map<string, Json>();

  of(schema: z.ZodType, io: "input" | "output"): Json {
    // What a caller writes may be more than the handler gets: texts for times and numbers.
    const made = z.toJSONSchema(schema, { io, unrepresentable: "any" }) as Json;
    const { $schema: _, $defs = {}, ...rest } = made as Json & { $defs?: Record<string, Json> };
    for (const [name, definition] of Object.entries($defs)) this.#named.set(name, withoutId(definition));
    const { id } = rest;
    if (typeof id !== "string") return referring(rest) as Json;
    this.#named.set(id, withoutId(rest));
    return { $ref: `#/components/schemas/${id}` };
  }

  all(): Json {
    const entries = [...this.#named].sort(([left], [right]) => (left < right ? -1 : 1));
    return Object.fromEntries(entries.map(([name, schema]) => [name, referring(schema)]));
  }
}

function withoutId({ id: _, ...schema }: Json): Json {
  return schema;
}

function referring(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(referring);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, item]) => [
      name,
      name === "$ref" && typeof item === "string" ? item.replace("#/$defs/", "#/components/schemas/") : referring(item),
    ]),
  );
}
