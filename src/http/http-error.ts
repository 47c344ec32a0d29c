import { z } from "zod";
import { ERROR_CATALOGUE, type ErrorCode, isRelayError, reasonOf } from "../core/errors.ts";

/** The one form of every error that the server answers with. */
export const errorSchema = z
  .object({
    error: z.object({
      code: z.string().describe("Stable, for programs"),
      message: z.string().describe("What happened, for people"),
      fix: z.string().optional().describe("What to do about it"),
    }),
  })
  .meta({ id: "Error" });

type ErrorBody = z.output<typeof errorSchema>;

/** An answer that is no success, thrown from wherever it is found out. */
export class HttpError extends Error {
  readonly status: number;
  readonly code: string;
  readonly fix: string | undefined;

  constructor(status: number, code: string, message: string, fix?: string) {
    super(message);
    this.name = "HttpError";
    this.status = status;
    this.code = code;
    this.fix = fix;
  }
}

/** What a caller did wrong is told by 4xx, what the database did by 503: then the same question may be asked again. */
const STATUS_BY_CODE: Partial<Record<ErrorCode, number>> = {
  CONFIG_INVALID: 400,
  DATABASE_UNREACHABLE: 503,
  DATABASE_BUSY: 503,
  DATABASE_REFUSED: 503,
  SCHEMA_MISSING: 503,
  SCHEMA_OLDER: 503,
  SCHEMA_NEWER: 503,
  GRANT_MISSING: 503,
};

const BY_FASTIFY: Readonly<Record<number, string>> = {
  400: "BAD_REQUEST",
  404: "NOT_FOUND",
  413: "BODY_TOO_LARGE",
  415: "CONTENT_TYPE_UNSUPPORTED",
};

export function errorAnswer(error: unknown): { readonly status: number; readonly body: ErrorBody } {
  if (error instanceof HttpError) return answer(error.status, error.code, error.message, error.fix);
  if (isRelayError(error)) {
    const { code, message } = error;
    const isAsked = code === "CONFIG_INVALID";
    const what = message.slice(0, Math.max(0, message.lastIndexOf(` [${code}]`))) || message;
    return answer(
      STATUS_BY_CODE[code] ?? 500,
      isAsked ? "BAD_REQUEST" : code,
      what,
      isAsked ? undefined : ERROR_CATALOGUE[code].fix,
    );
  }
  const status = (error as { readonly statusCode?: number } | null)?.statusCode ?? 500;
  if (status < 500) return answer(status, BY_FASTIFY[status] ?? "BAD_REQUEST", reasonOf(error));
  return answer(500, "INTERNAL", reasonOf(error), "Look at the service's log, and tell its makers.");
}

function answer(status: number, code: string, message: string, fix?: string) {
  return { status, body: { error: { code, message, ...(fix === undefined ? {} : { fix }) } } };
}
