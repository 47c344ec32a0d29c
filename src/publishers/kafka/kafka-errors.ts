import { connectionCause, connectionText } from "../../core/connection-cause.ts";
import { isRelayError } from "../../core/errors.ts";
import { type Failed, rejected, retry } from "../../core/outcome.ts";
import { serverText } from "../../core/server-text.ts";
import { describeBrokers, type KafkaSettings, secretsOf } from "./kafka-config.ts";
import { describeCode, meaningOf, nameOf } from "./kafka-error-codes.ts";

/** An error code that a broker sent, and its path in the response. */
interface BrokerAnswer {
  readonly code: number;
  readonly path: string | null;
  readonly message: string | null;
}

/** The fields of the client's errors that are read. Errors are nested in `errors` and `cause`. */
interface ClientError extends Error {
  readonly code?: unknown;
  readonly apiCode?: unknown;
  readonly path?: unknown;
  readonly serverErrorMessage?: unknown;
  readonly response?: unknown;
  readonly errors?: unknown;
}

/** The outcome that an error code means for a record of this topic. */
export function outcomeOf(code: number, topic: string, serverMessage: string | null = null): Failed {
  const { scope, isFinal, isPassing } = meaningOf(code);
  const said = serverMessage === null || serverMessage === "" ? "" : ` (${serverText(serverMessage)})`;
  const reason = `topic "${topic}": ${describeCode(code)}${said}`;
  const errorType = nameOf(code) ?? "UNKNOWN_KAFKA_CODE";
  if (isFinal) return rejected(reason, { errorType });
  // A partition that moves or has no leader affects only its own keys, and no event is at fault.
  return retry(reason, { scope, errorType, ...(isPassing ? { isOutside: true } : {}) });
}

/** All broker error codes in a client's error; empty when no broker answered. */
export function answersIn(error: unknown): BrokerAnswer[] {
  return errorsIn(error).flatMap(({ apiCode, path, serverErrorMessage }) =>
    typeof apiCode === "number" ? [{ code: apiCode, path: textOr(path), message: textOr(serverErrorMessage) }] : [],
  );
}

/** Whether a broker answered at all. Without an answer the result of the request is unknown. */
export function isAnswered(error: unknown): boolean {
  return answersIn(error).length > 0 || responseIn(error) !== undefined;
}

/** The response in a client's error. It has a result for each part of the request. */
export function responseIn(error: unknown): unknown {
  return errorsIn(error).find(({ response }) => response !== undefined)?.response;
}

/** Why there is no connection, in one line that names the setting to check and shows no secret. */
export function connectionReason(settings: KafkaSettings, error: unknown): string {
  const where = `Kafka at ${describeBrokers(settings.brokers)}`;
  return connectionText(where, causeOf(settings, errorsIn(error)), secretsOf(settings));
}

const CHECKED = { address: "brokers", trust: "tls.ca", identity: "tls.cert and tls.key", serverName: "tls.servername" };

function causeOf(settings: KafkaSettings, errors: readonly ClientError[]): string {
  const all = errors.map(({ message }) => message).join("\n");
  const answer = errors.find(({ apiCode }) => typeof apiCode === "number");
  if (/Broker requires TLS/.test(all)) return "the broker requires TLS: set tls";
  if (answer !== undefined) return describeCode(answer.apiCode as number);
  const refusal = /the broker refused the token: [\w. -]+/.exec(all)?.[0];
  if (refusal !== undefined) return `${refusal}: check sasl.token`;
  const provider = /The SASL\S* token provider [^\n]*/.exec(all)?.[0];
  if (provider !== undefined) return `sasl.token returned no token: ${serverText(errors.at(-1)?.message ?? provider)}`;
  if (/TLS handshake failed/.test(all))
    return "the TLS handshake failed: the broker's port may not speak TLS, check tls";
  const network = connectionCause(new AggregateError(errors), CHECKED);
  if (network !== null) return network;
  const system = errors.find(({ code }) => typeof code === "string" && !code.startsWith("PLT_KFK_"));
  if (system !== undefined) return `${system.message} (${system.code})`;
  if (/timed out/.test(all)) return "no answer in time: check brokers and the network";
  if (/Connection closed|Connection error/.test(all)) return closedCause(settings);
  return errors[0]?.message ?? "the connection failed";
}

/** A broker gives no reason when TLS or SASL is missing: it closes the connection. */
function closedCause({ tls, sasl }: KafkaSettings): string {
  const tlsPart = tls === null ? "tls" : tls.cert === undefined ? "tls.cert" : "";
  const missing = [tlsPart, sasl === null ? "sasl" : ""].filter(Boolean).join(" or ");
  const advice = missing === "" ? "check tls and sasl" : `it may require ${missing}, which is not set`;
  return `the broker closed the connection without a response: it is shutting down, is not Kafka, or ${advice}`;
}

/**
 * Combines the errors of two failed attempts. The first one says more: after an unanswered request the client closes
 * the connection, and the second attempt only reports that.
 */
export function bothFailures(first: unknown, second: unknown): unknown {
  return isRelayError(second) ? second : new AggregateError([first, second], "two attempts failed");
}

/** An error and all nested errors, outer ones first. */
function errorsIn(error: unknown): ClientError[] {
  const found: ClientError[] = [];
  const waiting = [error];
  while (waiting.length > 0) {
    const next = waiting.shift();
    if (!(next instanceof Error) || found.includes(next)) continue;
    const seen: ClientError = next;
    found.push(seen);
    if (Array.isArray(seen.errors)) waiting.push(...seen.errors);
    if (seen.cause !== undefined) waiting.push(seen.cause);
  }
  return found;
}

function textOr(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}
