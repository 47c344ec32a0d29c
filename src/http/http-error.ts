import { z } from "zod";
import { ERROR_CATALOGUE, type ErrorCode, isRelayError, reasonOf } from "../core/errors.ts";

/** Content type of every error response. */
export const PROBLEM_TYPE = "application/problem+json";

/** The only form of an error response: problem details as in RFC 9457. */
export const errorSchema = z
  .object({
    type: z.string().describe("urn:outbox-relay:error: followed by the code"),
    title: z.string().describe("The code in words"),
    status: z.int(),
    detail: z.string().describe("What happened, with the values"),
    code: z.string().describe("Stable; for programs"),
    fix: z.string().optional().describe("What to do"),
  })
  .meta({ id: "Problem" });

type Problem = z.output<typeof errorSchema>;

interface Refinements {
  readonly fix?: string | undefined;
  readonly headers?: Readonly<Record<string, string>>;
}

/** An error response; any code may throw it. */
export class HttpError extends Error {
  readonly status: number;
  readonly code: string;
  readonly fix: string | undefined;
  readonly headers: Readonly<Record<string, string>>;

  constructor(status: number, code: string, message: string, more: string | Refinements = {}) {
    super(message);
    const { fix, headers = {} } = typeof more === "string" ? { fix: more } : more;
    this.name = "HttpError";
    this.status = status;
    this.code = code;
    this.fix = fix;
    this.headers = headers;
  }
}

/** 4xx is an error of the caller. 503 is one of the database: then the same request can be retried. */
const STATUS_BY_CODE: Partial<Record<ErrorCode, number>> = {
  DATABASE_UNREACHABLE: 503,
  DATABASE_BUSY: 503,
  DATABASE_REFUSED: 503,
  SCHEMA_MISSING: 503,
  SCHEMA_OLDER: 503,
  SCHEMA_NEWER: 503,
  GRANT_MISSING: 503,
  CONFLICT: 409,
  NOTHING_MATCHES: 404,
};

const BY_FASTIFY: Readonly<Record<number, string>> = {
  400: "BAD_REQUEST",
  404: "NOT_FOUND",
  413: "BODY_TOO_LARGE",
  415: "CONTENT_TYPE_UNSUPPORTED",
};

/** A detail quotes the request, which may be long. */
const DETAIL_CHARACTERS_MAX = 2_000;

/** The error response for anything that was thrown. It may quote what servers answered, hence `redact`. */
export function problemOf(error: unknown, redact: (text: string) => string = (text) => text): Problem {
  const { status, code, what, fix } = factsOf(error);
  const detail = what.length > DETAIL_CHARACTERS_MAX ? `${what.slice(0, DETAIL_CHARACTERS_MAX)}...` : what;
  return {
    type: `urn:outbox-relay:error:${code}`,
    title: titleOf(code),
    status,
    detail: redact(detail),
    code,
    ...(fix === undefined ? {} : { fix: redact(fix) }),
  };
}

interface Facts {
  readonly status: number;
  readonly code: string;
  readonly what: string;
  readonly fix?: string | undefined;
}

function factsOf(error: unknown): Facts {
  if (error instanceof HttpError) {
    return { status: error.status, code: error.code, what: error.message, fix: error.fix };
  }
  if (isRelayError(error)) {
    const { code, message } = error;
    const what = message.slice(0, Math.max(0, message.lastIndexOf(` [${code}]`))) || message;
    if (code === "CONFIG_INVALID" || isUnstorable(error.cause)) return { status: 400, code: "BAD_REQUEST", what };
    return { status: STATUS_BY_CODE[code] ?? 500, code, what, fix: ERROR_CATALOGUE[code].fix };
  }
  const status = (error as { readonly statusCode?: number } | null)?.statusCode ?? 500;
  if (status < 500) return { status, code: BY_FASTIFY[status] ?? "BAD_REQUEST", what: reasonOf(error) };
  const fix = "Check the service's log, and report the error to its maintainers.";
  return { status: 500, code: "INTERNAL", what: reasonOf(error), fix };
}

/** PostgreSQL cannot store some texts, such as a NUL character: then the request was wrong. */
function isUnstorable(cause: unknown): boolean {
  return ["22021", "22P05"].includes(String((cause as { readonly code?: unknown } | undefined)?.code));
}

/** NOT_FOUND becomes "Not found". */
function titleOf(code: string): string {
  const words = code.toLowerCase().replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}
