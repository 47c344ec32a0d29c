import assert from "node:assert/strict";
import { createRequire } from "node:module";

type Json = Readonly<Record<string, unknown>>;
type Validate = ((value: unknown) => boolean) & { readonly errors?: unknown };
type Ajv = { addSchema(schema: object, key: string): unknown; compile(schema: object): Validate };

interface Operation {
  readonly operationId: string;
  readonly parameters?: readonly { readonly name: string; readonly in: string; readonly schema: object }[];
  readonly requestBody?: { readonly content: { readonly "application/json": { readonly schema: object } } };
  readonly responses: Readonly<Record<string, { readonly description: string; readonly content?: Json }>>;
}

export interface OpenApiDocument {
  readonly openapi: string;
  readonly info: { readonly title: string; readonly version: string };
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, object>> };
}

// The validator that the HTTP server brings along, for the dialect that OpenAPI 3.1 speaks.
const require = createRequire(createRequire(import.meta.url).resolve("fastify"));
const { Ajv2020 } = require("ajv/dist/2020.js") as { Ajv2020: new (options: object) => Ajv };

function validatorOf(document: OpenApiDocument): (schema: object) => Validate {
  const ajv = new Ajv2020({ strict: false, validateFormats: false });
  ajv.addSchema(document, "document");
  // A reference within the document is one to another place of it, wherever the schema stands.
  const absolute = (schema: object) => JSON.parse(JSON.stringify(schema).replaceAll('"#/', '"document#/')) as object;
  return (schema) => ajv.compile(absolute(schema));
}

/** The points in which a document can be wrong although it is JSON. */
export function requireValid(document: OpenApiDocument): void {
  assert.match(document.openapi, /^3\.1\.\d+$/);
  assert.ok(document.info.title !== "" && document.info.version !== "");
  const compile = validatorOf(document);
  for (const schema of Object.values(document.components.schemas)) compile(schema);
  const ids = new Set<string>();
  for (const [path, operations] of Object.entries(document.paths)) {
    assert.match(path, /^\//);
    for (const { operationId, parameters = [], responses } of Object.values(operations)) {
      assert.ok(!ids.has(operationId), `${operationId} is given out twice`);
      ids.add(operationId);
      const inPath = parameters.filter((parameter) => parameter.in === "path").map(({ name }) => name);
      assert.deepEqual(
        inPath,
        [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1]),
        path,
      );
      for (const { schema } of parameters) compile(schema);
      assert.ok(Object.keys(responses).length > 0 && Object.values(responses).every(({ description }) => description));
    }
  }
}

interface Question {
  readonly params?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: object;
  readonly token?: string;
}

/** The caller says what the body is; that it is as the document says is checked. */
export type Ask = <Body = Json>(
  method: "GET" | "POST",
  path: string,
  question?: Question,
) => Promise<{ readonly status: number; readonly body: Body }>;

/** Asks as the document says, and checks that the answer is one that it promises. */
export function apiClient(document: OpenApiDocument, address: string): Ask {
  const compile = validatorOf(document);
  return async <Body>(method: string, path: string, { params = {}, query = {}, body, token }: Question = {}) => {
    const operation =
      document.paths[path]?.[method.toLowerCase()] ?? assert.fail(`${method} ${path} is not documented`);
    const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(params[name] ?? ""));
    const response = await fetch(`${address}${filled}?${new URLSearchParams(query)}`, {
      method,
      headers: {
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    const answer =
      operation.responses[response.status] ??
      assert.fail(`${method} ${path} answers ${response.status}, which is not documented: ${text}`);
    const [[type, content] = ["", {}]] = Object.entries(answer.content ?? {});
    if (!/json$/.test(type)) return { status: response.status, body: { text } as Body };
    assert.ok(response.headers.get("content-type")?.startsWith(type), `${method} ${path} says it is ${type}`);
    const parsed = JSON.parse(text) as Body;
    const validate = compile((content as { schema: object }).schema);
    assert.ok(validate(parsed), `${method} ${path} ${response.status}: ${JSON.stringify(validate.errors)}\n${text}`);
    return { status: response.status, body: parsed };
  };
}
