import { RelayError } from "../core/errors.ts";
import type { OutboxEvent } from "../core/event.ts";
import { nearestName } from "./nearest-name.ts";

/** The table that the event comes from, for templates that name it. */
interface TemplateSource {
  readonly schema: string;
  readonly table: string;
}

/** A compiled template. It returns null when the event lacks a value that the template needs. */
export type Template = (event: OutboxEvent, source: TemplateSource) => string | null;

type Value = (event: OutboxEvent, source: TemplateSource) => string | null;

const VALUES: Readonly<Record<string, Value>> = {
  id: ({ id }) => id,
  type: ({ type }) => type,
  key: ({ key }) => key,
  correlation_id: ({ correlationId }) => correlationId,
  created_at: ({ createdAt }) => createdAt,
  schema: (_event, { schema }) => schema,
  table: (_event, { table }) => table,
};

const HEADER = "header:";
const NAMES = [...Object.keys(VALUES), `${HEADER}NAME`];

/**
 * A literal brace is written twice. Otherwise braces hold a name and, after a bar, the fallback for a missing value.
 */
const PART = /\{\{|\}\}|\{([^{}|]*)(?:\|([^{}]*))?\}|[{}]|[^{}]+/g;

/**
 * Compiles a text such as `outbox.{type}` or `{header:tenant|none}`. Nothing in it is ever run as code. Throws
 * CONFIG_INVALID for an unknown name.
 */
export function compileTemplate(text: string): Template {
  const parts = [...text.matchAll(PART)].map(([part, name, fallback]) => partOf(text, part, name, fallback));
  return (event, source) => {
    let result = "";
    for (const part of parts) {
      const value = typeof part === "string" ? part : part(event, source);
      if (value === null) return null;
      result += value;
    }
    return result;
  };
}

function partOf(text: string, part: string, name: string | undefined, fallback: string | undefined): string | Value {
  if (part === "{{" || part === "}}") return part.charAt(0);
  if (part === "{" || part === "}") throw invalid(text, `has a single "${part}"; write "${part}${part}" for a brace`);
  if (name === undefined) return part;
  const value = lookUp(text, name);
  return fallback === undefined ? value : (event, source) => value(event, source) ?? fallback;
}

function lookUp(text: string, name: string): Value {
  if (name.startsWith(HEADER) && name.length > HEADER.length) {
    const header = name.slice(HEADER.length);
    return ({ headers }) => (Object.hasOwn(headers, header) ? headers[header]! : null);
  }
  const value = Object.hasOwn(VALUES, name) ? VALUES[name] : undefined;
  if (value !== undefined) return value;
  const nearest = nearestName(name, Object.keys(VALUES));
  const hint = nearest === undefined ? "." : `; did you mean {${nearest}}?`;
  throw invalid(text, `has the unknown {${name}}${hint} Known names: ${NAMES.map((known) => `{${known}}`).join(", ")}`);
}

function invalid(text: string, what: string): RelayError {
  return new RelayError("CONFIG_INVALID", `The template ${JSON.stringify(text)} ${what}.`);
}
