import { type QueryValues, queryText } from "./place.ts";
import { createStore } from "./store.ts";

/** An error of the API. Status 0: the service did not answer. */
export class ApiError extends Error {
  readonly status: number;
  readonly code: string;
  readonly fix: string | null;

  constructor(status: number, code: string, message: string, fix: string | null) {
    super(message);
    this.name = "ApiError";
    this.status = status;
    this.code = code;
    this.fix = fix;
  }

  /** The same request may succeed later. */
  get isPassing(): boolean {
    return this.status === 0 || this.status === 502 || this.status === 503 || this.status === 504;
  }
}

/** Set while the service or its database is unavailable. Every answer and every failed request updates it. */
export const outage = createStore<ApiError | null>(null);

/** Counts up when an answer says that the session has ended; the shell then loads the session again. */
export const sessionEnds = createStore(0);

/** Relative to the page, which can be served under any path prefix. */
export function apiUrl(path: string, query: QueryValues = {}): string {
  const text = queryText(query);
  return `api/v1${path}${text === "" ? "" : `?${text}`}`;
}

export async function apiGet<T>(path: string, query: QueryValues = {}, signal?: AbortSignal): Promise<T> {
  return await ask<T>(apiUrl(path, query), signal === undefined ? {} : { signal });
}

export async function apiPost<T>(path: string, body: object = {}): Promise<T> {
  const headers = { "content-type": "application/json" };
  return await ask<T>(apiUrl(path), { method: "POST", headers, body: JSON.stringify(body) });
}

async function ask<T>(url: string, options: RequestInit): Promise<T> {
  const headers = { accept: "application/json", "x-outbox-relay-console": "1", ...options.headers };
  let answer: Response;
  try {
    answer = await fetch(url, { ...options, headers });
  } catch (error) {
    if (options.signal?.aborted) throw error;
    const gone = new ApiError(
      0,
      "SERVICE_UNREACHABLE",
      "The service does not answer.",
      "Check that it is running and reachable from this machine.",
    );
    outage.set(gone);
    throw gone;
  }
  if (!answer.ok) throw noted(await errorOf(answer), url);
  noteAnswer(url);
  return (answer.status === 204 ? undefined : await answer.json()) as T;
}

/** Paths that the service answers without its database. */
const WITHOUT_DATABASE = /^api\/v1\/(?:session|login|logout|overview|series|config)\b/;

function noteAnswer(url: string): void {
  if (outage.get()?.status === 0 || !WITHOUT_DATABASE.test(url)) outage.set(null);
}

function noted(error: ApiError, url: string): ApiError {
  if (error.isPassing) outage.set(error);
  else noteAnswer(url);
  if (error.status === 401 && !url.includes("/login")) sessionEnds.set(sessionEnds.get() + 1);
  return error;
}

async function errorOf(answer: Response): Promise<ApiError> {
  const text = await answer.text().catch(() => "");
  const { code, detail, fix, title } = problemIn(text);
  const what = detail ?? title ?? `The service answered HTTP ${answer.status} ${answer.statusText}`;
  return new ApiError(answer.status, code ?? String(answer.status), what, fix ?? null);
}

interface Problem {
  readonly code?: string;
  readonly detail?: string;
  readonly fix?: string;
  readonly title?: string;
}

/** A proxy may answer with its own error page, which is not a problem document. */
function problemIn(text: string): Problem {
  try {
    const value = JSON.parse(text) as Problem | null;
    return typeof value === "object" && value !== null ? value : {};
  } catch {
    return {};
  }
}
