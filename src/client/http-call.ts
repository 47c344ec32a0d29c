import { type ApiOperations, type CallOptions, OPERATIONS } from "./api-operations.ts";
import { RelayApiError } from "./relay-api-error.ts";

/** Options of `createRelayClient`. */
export interface RelayClientOptions {
  /** Where the service listens: `http://127.0.0.1:3012`. A path is kept, for services behind a prefix. */
  readonly url: string | URL;
  /** `ADMIN_TOKEN`, or one of `API_TOKENS`. A function is called before each call. */
  readonly token?: string | (() => string | Promise<string>);
  /** Absent: the global `fetch`. */
  readonly fetch?: typeof fetch;
  /** How long a call waits for its answer, 30 s by default. */
  readonly timeoutMs?: number;
}

/** One call of an operation, with all values of its request by name. */
export type Call = (
  operation: keyof ApiOperations,
  request: Readonly<Record<string, unknown>>,
  options?: CallOptions,
) => Promise<unknown>;

const TIMEOUT_MS = 30_000;

/** Calls operations of the service over HTTP. */
export function callerOf({ fetch: ask = fetch, timeoutMs = TIMEOUT_MS, token, url }: RelayClientOptions): Call {
  const base = String(new URL(url)).replace(/\/*$/, "");
  return async (operation, request, { signal } = {}) => {
    const { address, body, method } = httpOf(operation, request);
    const bearer = typeof token === "function" ? await token() : token;
    const timeout = AbortSignal.timeout(timeoutMs);
    const headers = {
      accept: "application/json",
      ...(body === undefined ? {} : { "content-type": "application/json" }),
      ...(bearer === undefined ? {} : { authorization: `Bearer ${bearer}` }),
    };
    const ends = signal === undefined ? timeout : AbortSignal.any([timeout, signal]);
    try {
      const response = await ask(`${base}${address}`, {
        method,
        headers,
        signal: ends,
        ...(body === undefined ? {} : { body }),
      });
      const text = await response.text();
      if (!response.ok) throw refusal(operation, response, text);
      return answerIn(operation, response, text);
    } catch (error) {
      if (error instanceof RelayApiError) throw error;
      signal?.throwIfAborted();
      throw unanswered(operation, base, timeout.aborted ? timeoutMs : null, error);
    }
  };
}

interface Http {
  readonly method: string;
  readonly address: string;
  readonly body?: string;
}

/** The values of a request in path, query and body. */
function httpOf(operation: keyof ApiOperations, request: Readonly<Record<string, unknown>>): Http {
  const { body: inBody, method, path } = OPERATIONS[operation];
  const rest = new Map(Object.entries(request).filter(([, value]) => value !== undefined));
  const take = (name: string): unknown => {
    const value = rest.get(name);
    rest.delete(name);
    return value;
  };
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(take(name) ?? "")));
  const body = Object.fromEntries(inBody.filter((name) => rest.has(name)).map((name) => [name, take(name)]));
  const query = new URLSearchParams([...rest].map(([name, value]): [string, string] => [name, textOf(value)]));
  const address = query.size === 0 ? filled : `${filled}?${query}`;
  return method === "GET" ? { method, address } : { method, address, body: JSON.stringify(body) };
}

function textOf(value: unknown): string {
  return value instanceof Date ? value.toISOString() : String(value);
}

interface Problem {
  readonly code?: unknown;
  readonly detail?: unknown;
  readonly fix?: unknown;
}

function refusal(operation: string, response: Response, text: string): RelayApiError {
  const { code, detail, fix } = problemIn(text);
  const { status, statusText } = response;
  const seconds = Number(response.headers.get("retry-after") ?? Number.NaN);
  return new RelayApiError(typeof detail === "string" ? detail : `The server answered HTTP ${status} ${statusText}`, {
    operation,
    status,
    code: typeof code === "string" ? code : `HTTP_${status}`,
    fix: typeof fix === "string" ? fix : null,
    retryAfterMs: Number.isFinite(seconds) ? seconds * 1_000 : null,
  });
}

/** A proxy may answer with a page of its own. */
function problemIn(text: string): Problem {
  try {
    return Object(JSON.parse(text)) as Problem;
  } catch {
    return {};
  }
}

function answerIn(operation: string, { status }: Response, text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch (cause) {
    const fix = "Check that `url` is the address of an outbox-relay service.";
    throw new RelayApiError("The answer is not JSON", { operation, status, code: "NOT_THE_API", fix, cause });
  }
}

function unanswered(operation: string, base: string, timeoutMs: number | null, cause: unknown): RelayApiError {
  if (timeoutMs !== null) {
    const fix = "Check the service's health, or raise `timeoutMs`. It is unknown whether a change took effect.";
    const what = `${base} did not answer within ${timeoutMs} ms`;
    return new RelayApiError(what, { operation, status: 0, code: "SERVICE_TIMEOUT", fix, cause });
  }
  const fix = "Check that the service runs and is reachable from this machine.";
  const reason =
    cause instanceof Error ? (cause.cause instanceof Error ? cause.cause.message : cause.message) : String(cause);
  const what = `${base} cannot be reached: ${reason}`;
  return new RelayApiError(what, { operation, status: 0, code: "SERVICE_UNREACHABLE", fix, cause });
}
