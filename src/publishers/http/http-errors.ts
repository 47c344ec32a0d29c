import { STATUS_CODES } from "node:http";
import { reasonOf } from "../../core/errors.ts";
import { delivered, type Outcome, rejected, retry, type Scope } from "../../core/outcome.ts";
import { retryAfterMs } from "../../core/retry-after.ts";
import { ForbiddenHost } from "./http-guard.ts";

/** What came of one request. */
export type Answer =
  | { readonly kind: "answered"; readonly status: number; readonly header: (name: string) => string | undefined }
  /** `wasSent`: at least a part of the request may have arrived. */
  | { readonly kind: "failed"; readonly error: Error; readonly wasSent: boolean };

/** Nobody knows whether it arrived. */
export const UNKNOWN = "unknown";

interface Circumstances {
  /** How far a failure of the address reaches. */
  readonly scope: Scope;
  /** The address without what may be secret in it. */
  readonly shown: string;
  readonly wallMs: number;
  readonly retryAfterMsMax: number;
}

const TOKEN = "check the address, and the token or password in HTTP_HEADERS";
const ADDRESS = "check the address";

/** Not the event's fault: the address is wrong, or whoever is there cannot take anything now. */
const OF_THE_ADDRESS: Readonly<Record<number, string>> = {
  401: TOKEN,
  402: "it wants to be paid",
  403: TOKEN,
  404: ADDRESS,
  405: "check the address and HTTP_METHOD",
  407: "a proxy wants a login",
  408: "it did not get the request in time",
  410: "nobody takes events there any more: check the address",
  421: ADDRESS,
  425: "it wants the event later",
  426: "it wants another protocol",
  429: "it wants fewer requests",
  502: "what is behind it does not answer",
  503: "it cannot take anything now",
  504: "what is behind it does not answer",
  511: "a network wants a login",
};

/** The event's own, and worth another try: it is being worked on, or something it needs is not there yet. */
const AGAIN = new Set([409, 423, 424]);

/** Sorts everything that can come of a request. */
export function outcomeOf(answer: Answer, circumstances: Circumstances): Outcome | typeof UNKNOWN {
  return answer.kind === "failed" ? ofError(answer, circumstances) : ofStatus(answer, circumstances);
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
  const advice = OF_THE_ADDRESS[status] ?? (status >= 520 && status <= 530 ? OF_THE_ADDRESS[502] : undefined);
  if (advice !== undefined) return retry(`${words}: ${advice}`, { scope, errorType, ...wait });
  if (status >= 500 || AGAIN.has(status)) return retry(words, { errorType, ...wait });
  return rejected(`${words}: it refuses this event`, { errorType });
}

/** The host alone: the rest of a location may hold a token. */
function redirectedTo(location: string | undefined, shown: string): string {
  const url = location === undefined ? null : URL.parse(location, shown);
  return url === null ? "" : ` to ${url.protocol}//${url.host}`;
}

const PLAIN_WORDS: Readonly<Record<string, string>> = {
  ECONNREFUSED: "nobody listens there",
  ENOTFOUND: "its name is not known",
  EAI_AGAIN: "its name cannot be looked up now",
  EHOSTUNREACH: "there is no way to it",
  ENETUNREACH: "there is no way to it",
  ETIMEDOUT: "it does not answer",
  UND_ERR_CONNECT_TIMEOUT: "it takes no connection in time",
  ERR_TLS_CERT_ALTNAME_INVALID: "its certificate is for another name",
  CERT_HAS_EXPIRED: "its certificate has expired",
  DEPTH_ZERO_SELF_SIGNED_CERT: "nobody we trust signed its certificate: HTTP_TLS_CA names whom to trust",
  SELF_SIGNED_CERT_IN_CHAIN: "nobody we trust signed its certificate: HTTP_TLS_CA names whom to trust",
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: "nobody we trust signed its certificate: HTTP_TLS_CA names whom to trust",
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: "nobody we trust signed its certificate: HTTP_TLS_CA names whom to trust",
};

function ofError(
  { error, wasSent }: Extract<Answer, { kind: "failed" }>,
  { scope, shown }: Circumstances,
): Outcome | typeof UNKNOWN {
  if (error instanceof ForbiddenHost) return rejected(error.message, { errorType: "HOST_FORBIDDEN" });
  const code = codeOf(error);
  if (code === "UND_ERR_INVALID_ARG")
    return rejected(`HTTP cannot carry the event: ${reasonOf(error, 300)}`, { error });
  if (error.name === "HTTPParserError") {
    return retry(`${shown} does not answer in HTTP`, { scope, errorType: "HTTP_MALFORMED", error });
  }
  // Where the address is everybody's, the engine finds out whether it is this event that gets no answer.
  if (wasSent && scope === "destination") return UNKNOWN;
  if (wasSent) return retry(`${shown} gave no answer: ${reasonOf(error)}`, { scope, errorType: "NO_ANSWER", error });
  const isTls = /^ERR_SSL_|^EPROTO$/.test(code);
  const words = isTls ? "it does not speak TLS as we do" : (PLAIN_WORDS[code] ?? reasonOf(error, 300));
  const named = code === "" ? "" : ` (${code})`;
  const isOutside = true;
  return retry(`${shown} cannot be reached: ${words}${named}`, { scope, errorType: "UNREACHABLE", isOutside, error });
}

function codeOf(error: Error): string {
  const { code } = error as { code?: unknown };
  return typeof code === "string" ? code : "";
}
