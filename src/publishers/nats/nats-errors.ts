import { connectionCause, connectionText, errorsIn } from "../../core/connection-cause.ts";
import { delivered, type Failed, type FailureScope, type Outcome, rejected, retry } from "../../core/outcome.ts";
import { serverText } from "../../core/server-text.ts";
import { describeServers, type NatsSettings, secretsOf } from "./nats-config.ts";

/** The answer to one message. */
export type NatsAnswer =
  /** A stream, or another subscriber of the subject, answered with this text. */
  | { readonly kind: "text"; readonly text: string }
  /** No stream and no subscriber listens to the subject. */
  | { readonly kind: "no responders" }
  /** The user must not publish to the subject. */
  | { readonly kind: "denied" };

interface PubAck {
  readonly stream?: unknown;
  readonly seq?: unknown;
  readonly error?: { readonly code?: unknown; readonly err_code?: unknown; readonly description?: unknown };
}

interface Meaning {
  readonly scope: FailureScope;
  /** No message can be the cause. */
  readonly isOutside?: true;
  readonly errorType: string;
  readonly advice?: string;
}

/** The JetStream error codes of a publish. Other codes are treated by their class. */
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
  [
    10_109,
    {
      scope: "topic",
      errorType: "STREAM_SEALED",
      advice: "a sealed stream accepts no more messages: use another stream",
    },
  ],
]);

const MESSAGE_TOO_LARGE = 10_054;

/** The outcome that an answer means for its message. */
export function outcomeOf(subject: string, answer: NatsAnswer, settings: NatsSettings): Outcome {
  const where = `subject "${subject}"`;
  if (answer.kind === "no responders") {
    const stream = settings.stream === null ? "a stream" : `the stream "${settings.stream}"`;
    const reason = `${where}: no stream takes it. Create ${stream} with this subject, and check that JetStream is enabled`;
    return retry(reason, { scope: "topic", errorType: "NO_STREAM" });
  }
  if (answer.kind === "denied") {
    return retry(`${where}: the user has no permission to publish to it`, {
      scope: "topic",
      errorType: "PUBLISH_DENIED",
    });
  }
  const ack = parsed(answer.text);
  if (ack?.error !== undefined) return refusalOf(where, ack, settings);
  // A duplicate is acknowledged with the position of the first message: it is stored.
  if (typeof ack?.stream === "string" && typeof ack.seq === "number") return delivered;
  const said = serverText(answer.text, 200);
  const reason = `${where}: a client that is not a stream answered (${said}): only streams must reply to this subject`;
  return retry(reason, { scope: "topic", errorType: "NO_ACK" });
}

function refusalOf(where: string, { error, stream }: PubAck, settings: NatsSettings): Failed {
  const code = typeof error?.err_code === "number" ? error.err_code : 0;
  const said = typeof error?.description === "string" ? serverText(error.description) : "refused";
  const at = typeof stream === "string" && stream !== "" ? ` by the stream "${stream}"` : "";
  const wanted = code === 10_060 && settings.stream !== null ? `, expected "${settings.stream}"` : "";
  const reason = `${where}: ${said}${at}${wanted} (${code})`;
  if (code === MESSAGE_TOO_LARGE) return rejected(reason, { errorType: "MESSAGE_TOO_LARGE" });
  const known = MEANINGS.get(code);
  if (known !== undefined) {
    const { advice, ...detail } = known;
    return retry(advice === undefined ? reason : `${reason}: ${advice}`, detail);
  }
  // A server failure has a 5xx code; any other code concerns this message.
  const scope = Number(error?.code) >= 500 ? "topic" : "event";
  return retry(reason, { scope, errorType: "JETSTREAM_ERROR" });
}

/** Why there is no connection, in one line without a secret. */
export function connectionReason(settings: NatsSettings, error: unknown): string {
  return connectionText(`NATS at ${describeServers(settings.servers)}`, causeOf(error), secretsOf(settings));
}

const CHECKED = { address: "the servers", trust: "tls.ca", identity: "tls.cert and tls.key" };

function causeOf(error: unknown): string {
  if (error === undefined || error === null) return "the server closed the connection";
  const errors = error instanceof Error ? errorsIn(error) : [new Error(String(error))];
  const all = errors.map(({ message }) => message).join("\n");
  const network = connectionCause(error, CHECKED);
  if (network !== null) return network;
  if (/authorization violation|authentication/i.test(all)) return `${all}: check user, password, token or credentials`;
  if (/server does not support 'tls'/.test(all)) return "the server has no TLS: remove tls";
  if (errors.some(({ name }) => name === "TimeoutError")) return "no answer in time";
  return all;
}

function parsed(text: string): PubAck | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" ? (value as PubAck | null) : null;
  } catch {
    return null;
  }
}
