import { type Failed, rejected, retry } from "../../core/outcome.ts";
import type { SqsSettings } from "./sqs-config.ts";

/** What the SDK throws, as far as we look at it. */
interface ClientError extends Error {
  readonly code?: unknown;
  readonly $fault?: "client" | "server";
  readonly $metadata?: { readonly httpStatusCode?: number };
  readonly $retryable?: { readonly throttling?: boolean };
  readonly $response?: { readonly headers?: Readonly<Record<string, string>> };
}

/** An entry of a batch that was refused while the batch was not. */
interface RefusedEntry {
  readonly Code?: string | undefined;
  readonly Message?: string | undefined;
  readonly SenderFault?: boolean | undefined;
}

/** Both the new names and those of the older protocol. */
const NO_QUEUE = /QueueDoesNotExist|NonExistentQueue|QueueDeletedRecently|ResourceNotFound/;
const NO_ACCESS =
  /AccessDenied|NotAuthorized|InvalidClientTokenId|UnrecognizedClient|SignatureDoesNotMatch|ExpiredToken|InvalidSecurity|IncompleteSignature|InvalidAccessKeyId|CredentialsProviderError|^Kms(?!Throttled)/;
const THROTTLED = /Throttl|TooManyRequests|OverLimit|SlowDown/;
const ILLEGAL =
  /InvalidMessageContents|InvalidParameterValue|InvalidAttributeValue|BatchRequestTooLong|MessageTooLong|TooLong/;
const THROTTLED_MS = 1_000;
const REASON_LENGTH_MAX = 500;

/** Whether a smaller request may tell which message is meant: the service refused the whole and took nothing of it. */
export function isAboutMessages(error: unknown): boolean {
  const { $fault, $metadata, $retryable, name } = error as ClientError;
  const isRefusal = $fault === "client" && ($metadata?.httpStatusCode ?? 0) < 500 && $retryable === undefined;
  return isRefusal && !NO_QUEUE.test(name) && !NO_ACCESS.test(name) && !THROTTLED.test(name);
}

/** For a request that failed as a whole. */
export function requestFailure(settings: SqsSettings, error: unknown): Failed {
  const { $response, $retryable, message, name } = error as ClientError;
  const queue = `queue "${settings.queue}" in ${settings.region}`;
  const said = oneLine(message === "" ? name : message);
  const common = { scope: "destination", errorType: name, error } as const;
  if (NO_QUEUE.test(name)) return retry(`${queue} does not exist: create it, or correct its name`, common);
  if (NO_ACCESS.test(name)) {
    const advice = "check the credentials and the right sqs:SendMessage";
    return retry(`${queue}: ${said} (${name}): ${advice}`, common);
  }
  if (THROTTLED.test(name) || $retryable?.throttling === true) {
    const seconds = Number($response?.headers?.["retry-after"]);
    const afterMs = seconds > 0 ? seconds * 1_000 : THROTTLED_MS;
    return retry(`${queue}: too many requests (${name})`, { ...common, afterMs });
  }
  if (isAboutMessages(error)) return refusal(`${queue}: ${said} (${name})`, name);
  return retry(`${queue}: ${connectionCause(error as ClientError, said)}`, common);
}

/** For one entry of a batch. */
export function entryFailure(settings: SqsSettings, entry: RefusedEntry): Failed {
  const { Code: code = "Unknown", Message: message = "", SenderFault: isOurs } = entry;
  const reason = `queue "${settings.queue}": ${oneLine(message)} (${code})`;
  if (THROTTLED.test(code)) return retry(reason, { scope: "destination", errorType: code, afterMs: THROTTLED_MS });
  // Nothing about the event was wrong, so it is not held against it.
  if (isOurs !== true) return retry(reason, { scope: "destination", errorType: code });
  return refusal(reason, code);
}

function refusal(reason: string, code: string): Failed {
  return ILLEGAL.test(code) ? rejected(reason, { errorType: code }) : retry(reason, { errorType: code });
}

function connectionCause({ code, name }: ClientError, said: string): string {
  if (code === "ECONNREFUSED") return "connection refused (ECONNREFUSED): nobody listens there";
  if (code === "ENOTFOUND" || code === "EAI_AGAIN")
    return `the host name is unknown (${code}): check region and endpoint`;
  if (name === "TimeoutError") return `no answer in time (${said})`;
  return typeof code === "string" ? `${said} (${code})` : `${said} (${name})`;
}

function oneLine(text: string): string {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length <= REASON_LENGTH_MAX ? line : `${line.slice(0, REASON_LENGTH_MAX - 1)}…`;
}
