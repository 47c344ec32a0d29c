import { fastifySwagger } from "@fastify/swagger";
import type { FastifyInstance, FastifySchema } from "fastify";
import { jsonSchemaTransform, jsonSchemaTransformObject } from "fastify-type-provider-zod";
import { z } from "zod";
import { SESSION_COOKIE } from "./auth/session.ts";
import { errorSchema, PROBLEM_TYPE } from "./http-error.ts";
import { type DocumentedAnswer, ok, type Route, route } from "./route.ts";

/** The route that serves the document; the document lists it too. */
export function openApiRoute(document: () => object): Route {
  return route({
    method: "GET",
    path: "/openapi.json",
    id: "openapi",
    summary: "This OpenAPI document",
    access: "open",
    answers: { 200: { description: "OpenAPI 3.1", schema: z.looseObject({ openapi: z.literal("3.1.1") }) } },
    handle: async () => ok(document()),
  });
}

/** Documents all routes that are added after this call: `server.swagger()`. */
export async function addDocument(server: FastifyInstance, version: string): Promise<void> {
  await server.register(fastifySwagger, {
    openapi: {
      openapi: "3.1.1",
      info: {
        title: "outbox-relay",
        version,
        description:
          "Health and metrics are public. The API is open to the user who runs the service, on its machine, or needs a token or a session. " +
          "x-role of each operation is the least role that it needs: viewer, operator or admin.",
        license: { name: "Apache-2.0", identifier: "Apache-2.0" },
      },
      components: {
        securitySchemes: {
          bearer: { type: "http", scheme: "bearer", description: "The ADMIN_TOKEN, or one of the API_TOKENS" },
          session: {
            type: "apiKey",
            in: "cookie",
            name: SESSION_COOKIE,
            description: "The console's session, created by a login",
          },
        },
      },
    },
    convertConstToEnum: false,
    transform: jsonSchemaTransform,
    transformObject: (document) => corrected(jsonSchemaTransformObject(document) as Document) as object,
  });
}

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, { readonly requestBody?: RequestBody }>>>>;
  readonly components: { schemas: Readonly<Record<string, object>> };
}

interface RequestBody {
  required: boolean;
  readonly content: Readonly<Record<string, { readonly schema: object }>>;
}

/** The libraries mark every body as required, and list every schema of the process twice, as input and as output. */
function corrected(document: Document): Document {
  const { components, paths } = document;
  for (const { requestBody } of Object.values(paths).flatMap((operations) => Object.values(operations))) {
    if (requestBody === undefined) continue;
    requestBody.required = Object.values(requestBody.content).some(({ schema }) => "required" in schema);
  }
  const used = referred(paths, components.schemas);
  components.schemas = Object.fromEntries(
    Object.entries(components.schemas)
      .filter(([name]) => used.has(name))
      .sort(),
  );
  return document;
}

function referred(part: unknown, schemas: Document["components"]["schemas"], found = new Set<string>()): Set<string> {
  for (const [, name = ""] of JSON.stringify(part).matchAll(/"#\/components\/schemas\/(\w+)"/g)) {
    if (found.has(name)) continue;
    found.add(name);
    referred(schemas[name], schemas, found);
  }
  return found;
}

/** The request schema that the server checks, with its documentation. `alias` counts the addresses of the route. */
export function schemaOf(it: Route, alias: number): FastifySchema {
  const { access, answers, body, id, params, query, summary } = it;
  const role = {
    description: `Requires the role ${access}.`,
    "x-role": access,
    security: [{ bearer: [] }, { session: [] }, {}],
  };
  return {
    operationId: alias === 0 ? id : `${id}${alias + 1}`,
    summary,
    ...(access === "open" ? { security: [] } : role),
    ...(params === null ? {} : { params }),
    ...(query === null ? {} : { querystring: query }),
    ...(body === null ? {} : { body }),
    response: Object.fromEntries(
      Object.entries({ ...refusalsOf(it), ...answers }).map(([status, answer]) => [status, answerOf(answer)]),
    ),
  };
}

const problem = (description: string): DocumentedAnswer => ({ description, schema: errorSchema });

/** Responses of the server itself, before the handler or instead of it. */
function refusalsOf({ access, body, method, params, path, query }: Route): Route["answers"] {
  const isChecked = params !== null || query !== null || body !== null || method === "POST";
  return {
    ...(isChecked || access !== "open" ? { 400: problem("Invalid request") } : {}),
    ...(access !== "open" ? { 401: problem("The token or session is missing, wrong or expired") } : {}),
    ...(access !== "open" || method === "POST"
      ? { 403: problem("The role is not sufficient, the API is off, or the request comes from another site") }
      : {}),
    ...(method === "POST" ? { 413: problem("The body is too large"), 415: problem("The body is not JSON") } : {}),
    ...(path.startsWith("/api/") ? { 429: problem("Too many requests: retry after the seconds in Retry-After") } : {}),
    ...(params === null && query === null ? {} : { 431: problem("The address is too long") }),
    ...(access !== "open" ? { 503: problem("The database is not available") } : {}),
  };
}

function answerOf({ description, schema, contentType }: DocumentedAnswer): object {
  if (schema === null && contentType === undefined) return z.null().describe(description);
  const types = contentType ?? (schema === errorSchema ? PROBLEM_TYPE : "application/json");
  const content = { schema: schema ?? z.string() };
  return { description, content: Object.fromEntries([types].flat().map((type) => [type, content])) };
}
