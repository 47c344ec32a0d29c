import type { OpenApiDocument } from "./openapi-client.ts";

interface Schema {
  readonly $ref?: string;
  readonly type?: string;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly anyOf?: readonly Schema[];
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly minimum?: number;
}

export interface NastyRequest {
  readonly method: string;
  /** With the query. */
  readonly path: string;
  readonly body?: unknown;
}

/** SQL, script, what no text of PostgreSQL can hold, what no filter understands, and what is simply too much. */
const TEXTS = [
  "'; drop table outbox_relay.audit; --",
  '<script>alert(1)</script>"><img src=x onerror=alert(1)>',
  "nul\0in the middle",
  "\ud800 half a letter",
  "\u202eright to left \u0000\u0001\u001b[31m",
  "%00%ff%c0%af../../../../etc/passwd",
  "$1 $ {7*7} {{7*7}} \\'\\\" %s %n",
  'type:"open key: (a OR ) age:>99999999d since:0000-00-00 text:',
  "-1e309",
  "99999999999999999999999999",
  "",
  "x".repeat(5_000),
  "[object Object]",
];

const OTHERS: readonly unknown[] = [
  null,
  true,
  -1,
  1e308,
  [],
  {},
  [[[[]]]],
  { toString: 1 },
  ["\0", null, {}],
  ["x\0y", "'; drop table x"],
];

/** Each field of each operation in turn with each of these, the others as they should be; of `ids` for what is an id. */
export function* nastyRequests(document: OpenApiDocument, ids: readonly string[]): Generator<NastyRequest> {
  for (const [path, operations] of Object.entries(document.paths)) {
    for (const [method, { parameters = [], requestBody }] of Object.entries(operations)) {
      const names = parameters.map(({ name }) => name);
      const inPath = new Set(parameters.filter((it) => it.in === "path").map(({ name }) => name));
      const schema =
        requestBody === undefined ? null : resolved(document, requestBody.content["application/json"].schema);
      const body = schema === null ? undefined : soundValue(document, schema, ids);
      const request = (given: Readonly<Record<string, string>>, sent: unknown = body): NastyRequest => {
        const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encoded(given[name] ?? ids[0] ?? "x"));
        const query = Object.entries(given).flatMap(([name, value]) =>
          inPath.has(name) ? [] : [`${name}=${encoded(value)}`],
        );
        return { method: method.toUpperCase(), path: `${filled}?${query.join("&")}`, body: sent };
      };
      yield request({});
      for (const name of names) for (const text of TEXTS) yield request({ [name]: text });
      for (const id of ids) yield request(Object.fromEntries([...inPath].map((name) => [name, id])));
      if (schema === null) continue;
      for (const name of Object.keys(schema.properties ?? {})) {
        for (const value of [...TEXTS, ...OTHERS]) yield request({}, { ...(body as object), [name]: value });
      }
      for (const value of OTHERS) yield request({}, value);
    }
  }
}

/** Half a letter cannot be written in an address; what a careless client makes of it can. */
function encoded(text: string): string {
  return encodeURIComponent(text.toWellFormed());
}

function resolved({ components }: OpenApiDocument, schema: Schema): Schema {
  const name = /^#\/components\/schemas\/(.*)$/.exec(schema.$ref ?? "")?.[1];
  return name === undefined ? schema : (components.schemas[name] as Schema);
}

function soundValue(document: OpenApiDocument, written: Schema, ids: readonly string[], name = ""): unknown {
  const schema = resolved(document, written);
  if (schema.const !== undefined) return schema.const;
  if (schema.enum !== undefined) return schema.enum[0];
  if (schema.anyOf !== undefined) return soundValue(document, schema.anyOf[0] ?? {}, ids, name);
  if (schema.type === "array") return [soundValue(document, schema.items ?? {}, ids, name)];
  if (schema.type === "object") {
    const { properties = {}, required = [] } = schema;
    return Object.fromEntries(required.map((it) => [it, soundValue(document, properties[it] ?? {}, ids, it)]));
  }
  if (schema.type === "string") return /^ids?$/.test(name) ? ids[0] : "x";
  return schema.type === "boolean" ? false : (schema.minimum ?? 1);
}
