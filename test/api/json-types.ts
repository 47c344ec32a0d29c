/** A JSON Schema as zod writes it, as far as the API uses it. */
export interface JsonSchema {
  readonly $ref?: string;
  readonly $defs?: Readonly<Record<string, JsonSchema>>;
  readonly type?: string | readonly string[];
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly JsonSchema[];
  readonly items?: JsonSchema;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | JsonSchema;
  readonly description?: string;
  readonly default?: unknown;
}

/** The TypeScript type of values that fit the schema. */
export function typeOf(schema: JsonSchema): string {
  if (schema.$ref !== undefined) return schema.$ref.replace("#/$defs/", "");
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum !== undefined) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  if (schema.anyOf !== undefined) return [...new Set(schema.anyOf.map(typeOf))].join(" | ");
  if (Array.isArray(schema.type)) return schema.type.map((type) => typeOf({ ...schema, type })).join(" | ");
  switch (schema.type) {
    case "integer":
    case "number":
      return "number";
    case "string":
    case "boolean":
    case "null":
      return schema.type;
    case "array":
      return `readonly ${inList(typeOf(schema.items ?? {}))}[]`;
    case "object":
      return objectType(schema);
    default:
      return "unknown";
  }
}

function objectType({ additionalProperties, properties = {}, required = [] }: JsonSchema): string {
  if (typeof additionalProperties === "object") return `Readonly<Record<string, ${typeOf(additionalProperties)}>>`;
  return `{\n${Object.entries(properties)
    .map(([name, schema]) => memberText(name, schema, required.includes(name)))
    .join("")}}`;
}

/** One line of an object's type, with what its schema says about it. */
export function memberText(name: string, schema: JsonSchema, isRequired: boolean): string {
  const comment = schema.description === undefined ? "" : `/** ${sentence(schema.description)} */\n`;
  const type = typeOf(schema);
  return `${comment}readonly ${name}${isRequired ? `: ${type}` : `?: ${type} | undefined`};\n`;
}

/** Descriptions in the API document are fragments; a comment is a sentence. */
export function sentence(text: string): string {
  const safe = text.replaceAll("*/", "* /");
  return /[.?!)]$/.test(safe) ? safe : `${safe}.`;
}

function inList(type: string): string {
  return /^(?:\w+|Readonly<.*>|\{[\s\S]*\})$/.test(type) && !type.includes(" | ") ? type : `(${type})`;
}
