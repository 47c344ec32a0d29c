import { RelayError } from "../../core/errors.ts";
import { type Failed, rejected, retry } from "../../core/outcome.ts";
import { describeBrokers, type KafkaSettings, secretsOf } from "./kafka-config.ts";
import { describeCode, meaningOf, nameOf } from "./kafka-error-codes.ts";

/** An error code that a broker sent, and where in its answer it stood. */
interface BrokerAnswer {
  readonly code: number;
  readonly path: string | null;
  readonly message: string | null;
}

/** What the client throws, as far as we look at it: errors hold others in `errors` and in `cause`. */
interface ClientError extends Error {
  readonly code?: unknown;
  readonly apiCode?: unknown;
  readonly path?: unknown;
  readonly serverErrorMessage?: unknown;
  readonly response?: unknown;
  readonly errors?: unknown;
}

const REASON_LENGTH_MAX = 500;

/** What an error code means for a record that was to go to this topic. */
export function outcomeOf(code: number, topic: string, serverMessage: string | null = null): Failed {
  const { scope, isFinal, isPassing } = meaningOf(code);
  const said = serverMessage === null || serverMessage === "" ? "" : ` (${oneLine(serverMessage)})`;
  const reason = `topic "${topic}": ${describeCode(code)}${said}`;
  const errorType = nameOf(code) ?? "UNKNOWN_KAFKA_CODE";
  if (isFinal) return rejected(reason, { errorType });
  // A partition that moves or lacks a leader fails for its keys alone, and is the fault of none of them.
  return retry(reason, { scope, errorType, ...(isPassing ? { isOutside: true } : {}) });
}

/** All error codes of brokers in a client's error; empty when no broker answered. */
export function answersIn(error: unknown): BrokerAnswer[] {
  return errorsIn(error).flatMap(({ apiCode, path, serverErrorMessage }) =>
    typeof apiCode === "number" ? [{ code: apiCode, path: textOr(path), message: textOr(serverErrorMessage) }] : [],
  );
}

/** Whether a broker answered at all. Without an answer nobody knows what became of the request. */
export function isAnswered(error: unknown): boolean {
  return answersIn(error).length > 0 || responseIn(error) !== undefined;
}

/** The answer that a client's error was made from: where several things were asked, it tells of each. */
export function responseIn(error: unknown): unknown {
  return errorsIn(error).find(({ response }) => response !== undefined)?.response;
}

/** For an error before anything was sent: no broker could be reached, or none let us in. */
export function unreachable(settings: KafkaSettings, error: unknown): Failed {
  return retry(connectionReason(settings, error), { scope: "destination", isOutside: true, error });
}

export function unreachableError(settings: KafkaSettings, error: unknown): RelayError {
  return new RelayError("DESTINATION_UNREACHABLE", `${connectionReason(settings, error)}.`, { cause: error });
}

/** Why no connection came about, in one line that names the setting to look at and no secret. */
export function connectionReason(settings: KafkaSettings, error: unknown): string {
  const where = `Kafka at ${describeBrokers(settings.brokers)}`;
  return withoutSecrets(`${where}: ${oneLine(causeOf(settings, errorsIn(error)))}`, secretsOf(settings));
}

function causeOf(settings: KafkaSettings, errors: readonly ClientError[]): string {
  const all = errors.map(({ message }) => message).join("\n");
  const answer = errors.find(({ apiCode }) => typeof apiCode === "number");
  if (/Broker requires TLS/.test(all)) return "the broker wants TLS: set tls";
  if (answer !== undefined) return describeCode(answer.apiCode as number);
  const refusal = /the broker refused the token: [\w. -]+/.exec(all)?.[0];
  if (refusal !== undefined) return `${refusal}: check sasl.token`;
  const provider = /The SASL\S* token provider [^\n]*/.exec(all)?.[0];
  if (provider !== undefined) return `sasl.token gave no token: ${oneLine(errors.at(-1)?.message ?? provider)}`;
  if (/TLS handshake failed/.test(all))
    return "the TLS handshake failed: the broker's port may not speak TLS, check tls";
  const system = errors.find(({ code }) => typeof code === "string" && !code.startsWith("PLT_KFK_"));
  if (system !== undefined) return systemCause(String(system.code), system.message);
  if (/timed out/.test(all)) return "no answer in time: check brokers and the network";
  if (/Connection closed|Connection error/.test(all)) return closedCause(settings);
  return errors[0]?.message ?? "the connection failed";
}

/** Brokers say nothing when TLS or SASL is missing: they close the connection. */
function closedCause({ tls, sasl }: KafkaSettings): string {
  const tlsPart = tls === null ? "tls" : tls.cert === undefined ? "tls.cert" : "";
  const missing = [tlsPart, sasl === null ? "sasl" : ""].filter(Boolean).join(" or ");
  const advice = missing === "" ? "check tls and sasl" : `it may want ${missing}, which is not set`;
  return `the broker closed the connection without an answer: it is going down, or ${advice}`;
}

function systemCause(code: string, message: string): string {
  if (code === "ECONNREFUSED") return `connection refused (${code}): no broker listens there, check brokers`;
  if (code === "ENOTFOUND" || code === "EAI_AGAIN") return `the host name is unknown (${code}): check brokers`;
  if (/^ERR_(SSL|OSSL)|EPROTO/.test(code)) return `TLS failed (${code}): check tls.cert, tls.key and the port`;
  if (/CERT|SIGNATURE|ISSUER|CA_KEY/.test(code)) return `${message} (${code}): check tls.ca and tls.servername`;
  return `${message} (${code})`;
}

/** An error and everything that it holds, outer ones first. */
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

function oneLine(text: string): string {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length <= REASON_LENGTH_MAX ? line : `${line.slice(0, REASON_LENGTH_MAX - 1)}…`;
}

function withoutSecrets(text: string, secrets: readonly string[]): string {
  return secrets.reduce((cleaned, secret) => cleaned.replaceAll(secret, "***"), text);
}

function textOr(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}
