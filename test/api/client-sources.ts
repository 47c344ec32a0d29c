import { execFileSync } from "node:child_process";
import { resolve } from "node:path";
import { z } from "zod";
import type { Route } from "../../src/http/route.ts";
import { operationRoutes } from "../../src/http/routes/operation-routes.ts";
import { type JsonSchema, memberText, sentence, typeOf } from "./json-types.ts";

const root = resolve(import.meta.dirname, "../..");
const HEAD = "// Made by `npm run generate` from the routes and schemas of src/http.\n";

/** The parts of the client that repeat what the API says, by their path. */
export function clientSources(): Readonly<Record<string, string>> {
  const types = new Map<string, string>();
  const routes = operationRoutes(() => {
    throw new Error("no operation runs here");
  });
  const operations = routes.flatMap((route) => {
    const answer = answerOf(route, types);
    return answer === null ? [] : [operationOf(route, answer, types)];
  });
  const named = [...types].toSorted(([one], [other]) => one.localeCompare(other)).map(([, text]) => text);
  return {
    "src/client/api-types.ts": formatted(`${HEAD}\n${named.join("\n")}`),
    "src/client/api-operations.ts": formatted(`${HEAD}${importOf(operations, types)}\n${facesOf(operations)}`),
  };
}

interface Operation {
  readonly route: Route;
  /** Name of the type, and whether the request may be left out; null without any. */
  readonly request: { readonly type: string; readonly isOptional: boolean } | null;
  readonly answer: string;
}

/** The type of a route's answers; null for streams and files. */
function answerOf({ answers, id }: Route, types: Map<string, string>): string | null {
  const good = Object.entries(answers).filter(([status]) => status.startsWith("2"));
  if (good.some(([, { schema }]) => schema === null)) return null;
  const names = good.map(([, { schema }]) => {
    const json = jsonOf(schema as z.ZodType, "output", types);
    if (json.$ref !== undefined) return typeOf(json);
    const name = `${capitalized(id)}Answer`;
    types.set(name, `export interface ${name} ${typeOf(json)}\n`);
    return name;
  });
  return names.join(" | ");
}

/** Path, query and body together are one object: no name is in two of them. */
function operationOf(route: Route, answer: string, types: Map<string, string>): Operation {
  const parts = [route.params, route.query, route.body].flatMap((part) => part ?? []);
  const json = parts.map((part) => jsonOf(part, "input", types));
  const members = json.flatMap(({ properties = {}, required = [] }) =>
    Object.entries(properties).map(([name, schema]) => ({ name, schema, isRequired: required.includes(name) })),
  );
  if (new Set(members.map(({ name }) => name)).size < members.length)
    throw new Error(`${route.id} names a value twice`);
  if (members.length === 0) return { route, request: null, answer };
  const type = `${capitalized(route.id)}Request`;
  const lines = members.map(({ isRequired, name, schema }) => memberText(name, schema, isRequired));
  types.set(type, `/** ${sentence(route.summary)} */\nexport interface ${type} {\n${lines.join("")}}\n`);
  return { route, request: { type, isOptional: members.every(({ isRequired }) => !isRequired) }, answer };
}

function jsonOf(schema: z.ZodType, io: "input" | "output", types: Map<string, string>): JsonSchema {
  const json = z.toJSONSchema(schema, { io, override: textBoolean }) as JsonSchema;
  for (const [name, part] of Object.entries(json.$defs ?? {})) {
    types.set(name, `export interface ${name} ${typeOf(part)}\n`);
  }
  return json;
}

/** A query is text, but the client takes a boolean for what the API reads as one. */
function textBoolean({ jsonSchema, zodSchema }: { readonly zodSchema: unknown; readonly jsonSchema: object }): void {
  if (zodSchema instanceof z.ZodPipe && zodSchema.out instanceof z.ZodBoolean)
    Object.assign(jsonSchema, { type: "boolean" });
}

function importOf(operations: readonly Operation[], types: ReadonlyMap<string, string>): string {
  const used = operations.flatMap(({ answer, request }) => [request?.type, ...answer.split(" | ")]);
  const names = [...new Set(used)].filter((name) => name !== undefined && types.has(name)).sort();
  return `import type { ${names.join(", ")} } from "./api-types.ts";\n`;
}

function facesOf(operations: readonly Operation[]): string {
  const methods = operations.map(({ answer, request, route }) => {
    const role = `Requires the role ${route.access}.`;
    const given = request === null ? "" : `request${request.isOptional ? "?" : ""}: ${request.type}, `;
    return `/** ${sentence(route.summary)} ${role} */
${route.id}(${given}options?: CallOptions): Promise<${answer}>;\n`;
  });
  const table = operations.map(({ request, route: { body, id, method, path } }) => {
    const inBody = body === null ? [] : Object.keys(body.shape);
    return `${id}: { method: "${method}", path: "${path}", body: ${JSON.stringify(inBody)}, takes: ${request !== null} },\n`;
  });
  return `/** Of one call. */
export interface CallOptions {
  /** Ends the call. */
  readonly signal?: AbortSignal;
}

/** Every operation of the HTTP API, by its id in the OpenAPI document. */
export interface ApiOperations {
${methods.join("\n")}}

/** Where each operation is, and which values of its request go into the body; the others go into path and query. */
export const OPERATIONS = {
${table.join("")}} as const satisfies Record<keyof ApiOperations, object>;
`;
}

const capitalized = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}`;

/** As the project formats its sources. */
function formatted(text: string): string {
  const biome = resolve(root, "node_modules/@biomejs/biome/bin/biome");
  const options = ["check", "--write", "--stdin-file-path=src/client/generated.ts"];
  return execFileSync(process.execPath, [biome, ...options], { cwd: root, input: text, encoding: "utf8" });
}
