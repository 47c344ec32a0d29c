import { connectionCause } from "../../core/connection-cause.ts";
import { type Failed, rejected, retry } from "../../core/outcome.ts";
import { serverText } from "../../core/server-text.ts";
import type { SqsSettings } from "./sqs-config.ts";

/** The fields of the SDK's errors that are read. */
interface ClientError extends Error {
  readonly code?: unknown;
  readonly $fault?: "client" | "server";
  readonly $metadata?: { readonly httpStatusCode?: number };
  readonly $retryable?: { readonly throttling?: boolean };
  readonly $response?: { readonly headers?: Readonly<Record<string, string>> };
}

/** A refused entry of an accepted batch. */
interface RefusedEntry {
  readonly Code?: string | undefined;
  readonly Message?: string | undefined;
  readonly SenderFault?: boolean | undefined;
}

/** The error names of both protocols, JSON and Query. */
const NO_QUEUE = /QueueDoesNotExist|NonExistentQueue|QueueDeletedRecently|ResourceNotFound/;
const NO_ACCESS =
  /AccessDenied|NotAuthorized|InvalidClientTokenId|UnrecognizedClient|SignatureDoesNotMatch|ExpiredToken|InvalidSecurity|IncompleteSignature|InvalidAccessKeyId|CredentialsProviderError|^Kms(?!Throttled)/;
const THROTTLED = /Throttl|TooManyRequests|OverLimit|SlowDown/;
const ILLEGAL =
  /InvalidMessageContents|InvalidParameterValue|InvalidAttributeValue|BatchRequestTooLong|MessageTooLong|TooLong/;
const THROTTLED_MS = 1_000;

/** Whether the service itself answered, and not something on the way to it. */
export function isAnswer(error: unknown): boolean {
  return (error as ClientError).$metadata?.httpStatusCode !== undefined;
}

/** Whether a smaller request could identify the message at fault: the service refused the whole batch. */
export function isAboutMessages(error: unknown): boolean {
  const { $fault, $metadata, $retryable, name } = error as ClientError;
  const isRefusal = $fault === "client" && ($metadata?.httpStatusCode ?? 0) < 500 && $retryable === undefined;
  return isRefusal && !NO_QUEUE.test(name) && !NO_ACCESS.test(name) && !THROTTLED.test(name);
}

/** The outcome of a request that failed as a whole. */
export function requestFailure(settings: SqsSettings, error: unknown): Failed {
  const { $response, $retryable, message, name } = error as ClientError;
  const queue = `queue "${settings.queue}" in ${settings.region}`;
  const said = serverText(message === "" ? name : message);
  const common = { scope: "destination", errorType: name, error } as const;
  if (NO_QUEUE.test(name)) return retry(`${queue} does not exist: create it, or correct its name (${said})`, common);
  if (NO_ACCESS.test(name)) {
    const advice = "check the credentials and the permission sqs:SendMessage";
    return retry(`${queue}: ${said} (${name}): ${advice}`, common);
  }
  if (THROTTLED.test(name) || $retryable?.throttling === true) {
    const seconds = Number($response?.headers?.["retry-after"]);
    const afterMs = seconds > 0 ? seconds * 1_000 : THROTTLED_MS;
    return retry(`${queue}: too many requests: ${said} (${name})`, { ...common, afterMs });
  }
  if (isAboutMessages(error)) return refusal(`${queue}: ${said} (${name})`, name);
  return retry(`${queue}: ${causeOf(error as ClientError, said)}`, common);
}

/** The outcome of one refused entry. */
export function entryFailure(settings: SqsSettings, entry: RefusedEntry): Failed {
  const { Code: code = "Unknown", Message: message = "", SenderFault: isOurs } = entry;
  const reason = `queue "${settings.queue}": ${serverText(message)} (${code})`;
  if (THROTTLED.test(code)) return retry(reason, { scope: "destination", errorType: code, afterMs: THROTTLED_MS });
  // The event is not at fault, so no attempt is counted.
  if (isOurs !== true) return retry(reason, { scope: "destination", errorType: code });
  return refusal(reason, code);
}

function refusal(reason: string, code: string): Failed {
  return ILLEGAL.test(code) ? rejected(reason, { errorType: code }) : retry(reason, { errorType: code });
}

const CHECKED = {
  address: "region and endpoint",
  trust: "the certificates to trust",
  identity: "the client certificate",
};

function causeOf(error: ClientError, said: string): string {
  const { code, name } = error;
  const network = connectionCause(error, CHECKED);
  if (network !== null) return network;
  if (name === "SyntaxError") return "the server that answers there is not SQS: check the endpoint";
  if (name === "TimeoutError") return `no answer in time (${said})`;
  return typeof code === "string" ? `${said} (${code})` : `${said} (${name})`;
}
