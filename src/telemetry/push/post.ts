import { reasonOf } from "../../core/errors.ts";

/** A receiver's URL, and the headers that hold its login. */
export interface PushTarget {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** The result of a push: accepted, to be retried, or refused for good. */
export type Pushed =
  | { readonly kind: "accepted" }
  | {
      readonly kind: "retry" | "refused";
      readonly reason: string;
      /** The beginning of the receiver's response, without the login. */
      readonly response: string;
    };

const TIMEOUT_MS = 5_000;
const ANSWER_CHARS_MAX = 200;

/** `basicAuth` is user:password; without it the login in the address is used. */
export function pushTarget(address: string, path: string, basicAuth: string | null): PushTarget {
  const url = new URL(address);
  const login = basicAuth ?? loginIn(url);
  url.username = "";
  url.password = "";
  if (path !== "" && !url.pathname.endsWith(path)) url.pathname = url.pathname.replace(/\/$/, "") + path;
  const authorization = login === null ? {} : { authorization: `Basic ${Buffer.from(login).toString("base64")}` };
  return { url: url.href, headers: authorization };
}

function loginIn({ username, password }: URL): string | null {
  return username === "" ? null : `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
}

/** Never throws, and never exceeds the timeout. A receiver that is overloaded or failing gets a retry. */
export async function post(
  { url, headers }: PushTarget,
  body: Buffer,
  more: Readonly<Record<string, string>>,
  timeoutMs = TIMEOUT_MS,
): Promise<Pushed> {
  try {
    const response = await fetch(url, {
      method: "POST",
      headers: { ...headers, ...more },
      body: new Uint8Array(body),
      redirect: "error",
      signal: AbortSignal.timeout(timeoutMs),
    });
    const text = await response.text();
    if (response.ok) return { kind: "accepted" };
    const kind = response.status === 429 || response.status >= 500 ? "retry" : "refused";
    return { kind, reason: `it answered ${response.status}`, response: quotable(text, headers) };
  } catch (error) {
    return { kind: "retry", reason: failureReason(error, timeoutMs), response: "" };
  }
}

/** With the receiver's response; for the log. */
export function fullReason({ reason, response }: Exclude<Pushed, { kind: "accepted" }>): string {
  return `${reason} ${response}`.trim();
}

/** Some receivers repeat the request in their response, login included. */
function quotable(answer: string, headers: PushTarget["headers"]): string {
  const clean = Object.values(headers).reduce((text, value) => text.replaceAll(value, "[redacted]"), answer);
  return clean.trim().slice(0, ANSWER_CHARS_MAX);
}

function failureReason(error: unknown, timeoutMs: number): string {
  if (error instanceof Error && error.name === "TimeoutError") return `no answer within ${timeoutMs} ms`;
  // "fetch failed" says nothing; its cause does.
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  return reasonOf(cause, ANSWER_CHARS_MAX);
}
