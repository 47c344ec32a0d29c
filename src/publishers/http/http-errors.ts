import { STATUS_CODES } from "node:http";
import { connectionCause } from "../../core/connection-cause.ts";
import { reasonOf } from "../../core/errors.ts";
import { delivered, type FailureScope, type Outcome, rejected, retry } from "../../core/outcome.ts";
import { retryAfterMs } from "../../core/retry-policy.ts";
import { ForbiddenHost } from "./http-guard.ts";

/** The result of one request. */
export type Answer =
  | {
      readonly kind: "answered";
      readonly status: number;
      readonly header: (name: string) => string | undefined;
      /** The beginning of the body; empty after a success. */
      readonly body: Buffer;
    }
  /** `wasSent`: the request, or a part of it, may have arrived. */
  | { readonly kind: "failed"; readonly error: Error; readonly wasSent: boolean };

/** It is unknown whether the event arrived. */
export const UNKNOWN = "unknown";

interface Circumstances {
  /** Which events a failure of the address affects. */
  readonly scope: FailureScope;
  /** The address without parts that may be secret. */
  readonly shown: string;
  readonly wallMs: number;
  readonly retryAfterMsMax: number;
  /** The text of the refusal; empty if there is none. */
  readonly said: string;
}

const TOKEN = "check the address, and the token or password in HTTP_HEADERS";
const ADDRESS = "check the address";

/**
 * Statuses that are not the event's fault: the address is wrong, or the receiver cannot accept any event now. Each with
 * advice.
 */
const ADDRESS_ADVICE: Readonly<Record<number, string>> = {
  401: TOKEN,
  402: "the receiver requires payment",
  403: TOKEN,
  404: ADDRESS,
  405: "check the address and HTTP_METHOD",
  407: "a proxy requires a login",
  408: "the receiver did not get the request in time",
  410: "the endpoint no longer exists: check the address",
  421: ADDRESS,
  425: "the receiver wants the event later",
  426: "the receiver requires another protocol",
  429: "the receiver limits the request rate",
  502: "the server behind the gateway does not answer",
  503: "the receiver is unavailable at present",
  504: "the server behind the gateway does not answer",
  511: "the network requires a login",
};

/** Statuses that concern only this event and may pass: it is being processed, or something it depends on is missing. */
const AGAIN = new Set([409, 423, 424]);

/** Maps the result of a request to an outcome. */
export function outcomeOf(answer: Answer, circumstances: Circumstances): Outcome | typeof UNKNOWN {
  if (answer.kind === "failed") return ofError(answer, circumstances);
  const outcome = ofStatus(answer, circumstances);
  const { said } = circumstances;
  if (said === "" || !("reason" in outcome)) return outcome;
  return { ...outcome, reason: `${outcome.reason}; it said: ${said}`, commonReason: outcome.reason };
}

function ofStatus(answer: Extract<Answer, { kind: "answered" }>, circumstances: Circumstances): Outcome {
  const { status } = answer;
  if (status >= 200 && status < 300) return delivered;
  const { scope, shown } = circumstances;
  const words = `${shown} answered ${[status, STATUS_CODES[status]].filter(Boolean).join(" ")}`;
  const errorType = `HTTP_${status}`;
  const afterMs = retryAfterMs(answer.header("retry-after"), circumstances.wallMs, circumstances.retryAfterMsMax);
  const wait = afterMs === null ? {} : { afterMs };
  if (status < 400) {
    const where = redirectedTo(answer.header("location"), shown);
    return retry(`${words}${where}; redirects are not followed, ${ADDRESS}`, { scope, errorType, ...wait });
  }
  const advice = ADDRESS_ADVICE[status] ?? (status >= 520 && status <= 530 ? ADDRESS_ADVICE[502] : undefined);
  if (advice !== undefined) return retry(`${words}: ${advice}`, { scope, errorType, ...wait });
  if (status >= 500 || AGAIN.has(status)) return retry(words, { errorType, ...wait });
  // Lists show the beginning of a reason: the receiver's own words matter most there.
  return rejected(circumstances.said === "" ? `${words}: the receiver rejects this event` : words, { errorType });
}

/** Shows only the host: the rest of a location may contain a token. */
function redirectedTo(location: string | undefined, shown: string): string {
  const url = location === undefined ? null : URL.parse(location, shown);
  return url === null ? "" : ` to ${url.protocol}//${url.host}`;
}

const CHECKED = { address: "the address", trust: "HTTP_TLS_CA", identity: "HTTP_TLS_CERT and HTTP_TLS_KEY" };

function ofError(
  { error, wasSent }: Extract<Answer, { kind: "failed" }>,
  { scope, shown }: Circumstances,
): Outcome | typeof UNKNOWN {
  if (error instanceof ForbiddenHost) return rejected(error.message, { errorType: "HOST_FORBIDDEN" });
  const code = codeOf(error);
  if (code === "UND_ERR_INVALID_ARG")
    return rejected(`the event cannot be sent over HTTP: ${reasonOf(error, 300)}`, { error });
  if (error.name === "HTTPParserError") {
    return retry(`${shown} does not speak HTTP: check the address`, { scope, errorType: "HTTP_MALFORMED", error });
  }
  // All events share this address, so the engine finds out whether only this event gets no answer.
  if (wasSent && scope === "destination") return UNKNOWN;
  if (wasSent) return retry(`${shown} gave no answer: ${reasonOf(error)}`, { scope, errorType: "NO_ANSWER", error });
  const named = code === "" ? "" : ` (${code})`;
  const words = connectionCause(error, CHECKED) ?? `${reasonOf(error, 300)}${named}`;
  const isOutside = true;
  return retry(`${shown} is unreachable: ${words}`, { scope, errorType: "UNREACHABLE", isOutside, error });
}

function codeOf(error: Error): string {
  const { code } = error as { code?: unknown };
  return typeof code === "string" ? code : "";
}
