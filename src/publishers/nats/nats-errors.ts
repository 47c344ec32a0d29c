import { RelayError } from "../../core/errors.ts";
import { delivered, type Failed, type Outcome, rejected, retry, type Scope } from "../../core/outcome.ts";
import { describeServers, type NatsSettings, secretsOf } from "./nats-config.ts";

/** What came back for one message, as far as we look at it. */
export type NatsAnswer =
  /** A stream, or whoever else listens to the subject, answered with this text. */
  | { readonly kind: "text"; readonly text: string }
  /** The server knows of nobody who listens to the subject. */
  | { readonly kind: "nobody" }
  /** The login may not publish to the subject. */
  | { readonly kind: "denied" };

interface PubAck {
  readonly stream?: unknown;
  readonly seq?: unknown;
  readonly error?: { readonly code?: unknown; readonly err_code?: unknown; readonly description?: unknown };
}

interface Meaning {
  readonly scope: Scope;
  /** No message can be the cause. */
  readonly isOutside?: true;
  readonly errorType: string;
  readonly advice?: string;
}

/** The error codes of JetStream that a publish can meet; what is not here counts by its class. */
const MEANINGS: ReadonlyMap<number, Meaning> = new Map([
  [10_002, { scope: "destination", errorType: "ACCOUNT_LIMIT", advice: "raise the account's limits" }],
  [10_008, { scope: "destination", isOutside: true, errorType: "JETSTREAM_UNAVAILABLE" }],
  [10_009, { scope: "topic", isOutside: true, errorType: "NO_LEADER" }],
  [10_023, { scope: "destination", errorType: "NO_RESOURCES", advice: "raise max_file or max_mem of the server" }],
  [10_028, { scope: "destination", errorType: "NO_RESOURCES", advice: "raise max_mem of the server" }],
  [10_039, { scope: "destination", errorType: "JETSTREAM_OFF", advice: "enable JetStream for the account" }],
  [10_047, { scope: "destination", errorType: "NO_RESOURCES", advice: "raise max_file of the server" }],
  [10_060, { scope: "topic", errorType: "WRONG_STREAM", advice: "correct stream, or the subjects of the streams" }],
  [10_076, { scope: "destination", errorType: "JETSTREAM_OFF", advice: "enable JetStream on the server" }],
  [10_077, { scope: "topic", errorType: "STREAM_FULL", advice: "raise its limits, or let it discard old messages" }],
  [10_109, { scope: "topic", errorType: "STREAM_SEALED", advice: "a sealed stream takes nothing any more" }],
]);

const MESSAGE_TOO_LARGE = 10_054;
const REASON_LENGTH_MAX = 500;

/** What an answer means for the message that it is about. */
export function outcomeOf(subject: string, answer: NatsAnswer, settings: NatsSettings): Outcome {
  const where = `subject "${subject}"`;
  if (answer.kind === "nobody") {
    const stream = settings.stream === null ? "a stream" : `the stream "${settings.stream}"`;
    const reason = `${where}: no stream takes it. Create ${stream} with this subject, and check that JetStream is enabled`;
    return retry(reason, { scope: "topic", errorType: "NO_STREAM" });
  }
  if (answer.kind === "denied") {
    return retry(`${where}: the login may not publish to it`, { scope: "topic", errorType: "PUBLISH_DENIED" });
  }
  const ack = parsed(answer.text);
  if (ack?.error !== undefined) return refusalOf(where, ack, settings);
  // A repetition is acknowledged like a first message, with the place of the first: it is there.
  if (typeof ack?.stream === "string" && typeof ack.seq === "number") return delivered;
  const reason = `${where}: something else than a stream answered; nobody but streams may reply to it`;
  return retry(reason, { scope: "topic", errorType: "NO_ACK" });
}

function refusalOf(where: string, { error, stream }: PubAck, settings: NatsSettings): Failed {
  const code = typeof error?.err_code === "number" ? error.err_code : 0;
  const said = typeof error?.description === "string" ? oneLine(error.description) : "refused";
  const at = typeof stream === "string" && stream !== "" ? ` by the stream "${stream}"` : "";
  const wanted = code === 10_060 && settings.stream !== null ? `, "${settings.stream}" was wanted` : "";
  const reason = `${where}: ${said}${at}${wanted} (${code})`;
  if (code === MESSAGE_TOO_LARGE) return rejected(reason, { errorType: "MESSAGE_TOO_LARGE" });
  const known = MEANINGS.get(code);
  if (known !== undefined) {
    const { advice, ...detail } = known;
    return retry(advice === undefined ? reason : `${reason}: ${advice}`, detail);
  }
  // A server that fails says so with 5xx; what is left is about this message.
  const scope = Number(error?.code) >= 500 ? "topic" : "event";
  return retry(reason, { scope, errorType: "JETSTREAM_ERROR" });
}

/** For an error before anything was sent: no server could be reached, or none let us in. */
export function unreachable(settings: NatsSettings, error: unknown): Failed {
  return retry(connectionReason(settings, error), { scope: "destination", isOutside: true, error });
}

export function unreachableError(settings: NatsSettings, error: unknown): RelayError {
  return new RelayError("DESTINATION_UNREACHABLE", `${connectionReason(settings, error)}.`, { cause: error });
}

function connectionReason(settings: NatsSettings, error: unknown): string {
  const text = `NATS at ${describeServers(settings.servers)}: ${oneLine(causeOf(error))}`;
  return secretsOf(settings).reduce((cleaned, secret) => cleaned.replaceAll(secret, "***"), text);
}

/** What a client sees that writes to a server which has just gone. */
const CONNECTION_LOST = /^(?:ECONNRESET|EPIPE|ERR_STREAM_(?:WRITE_AFTER_END|DESTROYED|PREMATURE_CLOSE))$/;

function causeOf(error: unknown): string {
  if (error === undefined || error === null) return "the server closed the connection";
  const errors = errorsIn(error);
  const all = errors.map(({ message }) => message).join("\n");
  const code = errors.map((it) => (it as NodeJS.ErrnoException).code).find((it) => typeof it === "string");
  if (code === "ECONNREFUSED") return "connection refused (ECONNREFUSED): no server listens there";
  if (code === "ENOTFOUND" || code === "EAI_AGAIN") return `the host name is unknown (${code})`;
  if (code !== undefined && CONNECTION_LOST.test(code))
    return `the server closed the connection, or was killed (${code})`;
  if (code !== undefined && /CERT|SIGNATURE|ISSUER|CA_KEY|ALTNAME/.test(code)) return `${all} (${code}): check tls.ca`;
  if (/authorization violation|authentication/i.test(all)) return `${all}: check user, password, token or credentials`;
  if (/server does not support 'tls'/.test(all)) return "the server has no TLS: remove tls";
  if (errors.some(({ name }) => name === "TimeoutError")) return "no answer in time";
  return code === undefined ? all : `${all} (${code})`;
}

/** An error and what caused it. */
function errorsIn(error: unknown): Error[] {
  const found: Error[] = [];
  for (let next = error; next instanceof Error && found.length < 5; next = next.cause) found.push(next);
  return found.length === 0 ? [new Error(String(error))] : found;
}

function parsed(text: string): PubAck | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" ? (value as PubAck | null) : null;
  } catch {
    return null;
  }
}

function oneLine(text: string): string {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length <= REASON_LENGTH_MAX ? line : `${line.slice(0, REASON_LENGTH_MAX - 1)}…`;
}
