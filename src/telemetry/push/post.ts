import { reasonOf } from "../../core/errors.ts";

/** A receiver's address, with the login that may stand in it. */
export interface PushTarget {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** What became of a push: taken, to be tried again, or refused for good. */
export type Pushed = { readonly kind: "taken" } | { readonly kind: "retry" | "refused"; readonly reason: string };

const TIMEOUT_MS = 5_000;
const ANSWER_CHARS_MAX = 200;

/** `basicAuth` is user:password; without it the address's own login counts. */
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

/** Never throws, and never takes longer than its time. A receiver that is told too much, or fails, may be asked again. */
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
    if (response.ok) return { kind: "taken" };
    const reason = `it answered ${response.status} ${quotable(text, headers)}`.trim();
    return { kind: response.status === 429 || response.status >= 500 ? "retry" : "refused", reason };
  } catch (error) {
    return { kind: "retry", reason: whyNot(error, timeoutMs) };
  }
}

/** Some repeat in their answer what they were sent, the login included. */
function quotable(answer: string, headers: PushTarget["headers"]): string {
  const clean = Object.values(headers).reduce((text, value) => text.replaceAll(value, "[redacted]"), answer);
  return clean.trim().slice(0, ANSWER_CHARS_MAX);
}

function whyNot(error: unknown, timeoutMs: number): string {
  if (error instanceof Error && error.name === "TimeoutError") return `no answer within ${timeoutMs} ms`;
  // "fetch failed" tells nothing; its cause does.
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  return reasonOf(cause, ANSWER_CHARS_MAX);
}
