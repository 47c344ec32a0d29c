import { RelayError } from "./errors.ts";
import { type Failed, retry } from "./outcome.ts";
import { serverText } from "./server-text.ts";

/** The settings that an operator checks when a connection fails, by their names at this destination. */
interface ConnectionSettings {
  /** The setting with the address, for instance `brokers` or "host and port". */
  readonly address: string;
  /** The setting with the certificates to trust. */
  readonly trust: string;
  /** The setting with the client's own certificate; absent where none can be set. */
  readonly identity?: string;
  /** The setting with the name that the server's certificate must have; absent where it is always the address. */
  readonly serverName?: string;
}

interface CodedError extends Error {
  readonly code?: unknown;
  readonly errors?: unknown;
}

/**
 * An error with its causes. An AggregateError (several addresses were tried) is replaced by the errors that it holds.
 */
export function errorsIn(error: unknown): CodedError[] {
  const found: CodedError[] = [];
  const waiting = [error];
  while (waiting.length > 0) {
    const next = waiting.shift();
    if (!(next instanceof Error) || found.includes(next)) continue;
    const seen: CodedError = next;
    if (Array.isArray(seen.errors) && seen.errors.length > 0) waiting.unshift(...seen.errors);
    else found.push(seen);
    if (seen.cause !== undefined) waiting.push(seen.cause);
  }
  return found;
}

/** The error of the network or of TLS as "cause (code): advice". Null when none of the errors has such a code. */
export function connectionCause(error: unknown, settings: ConnectionSettings): string | null {
  for (const { code, message } of errorsIn(error)) {
    if (typeof code !== "string") continue;
    const [cause, advice] = meaningOf(code, settings) ?? [];
    if (cause !== undefined) return `${cause} (${code})${advice === undefined ? "" : `: ${advice}`}`;
    if (/CERT|SIGNATURE|ISSUER|CA_KEY/.test(code)) return `${message} (${code}): check ${settings.trust}`;
  }
  return null;
}

/** Why there is no connection, in one line without a secret. */
export function connectionText(where: string, cause: string, secrets: readonly string[] = []): string {
  return secrets.reduce((text, secret) => text.replaceAll(secret, "***"), `${where}: ${serverText(cause)}`);
}

/** For an error before anything was sent: no server could be reached, or none let us in. */
export function unreachable(reason: string, error: unknown): Failed {
  return retry(reason, { scope: "destination", isOutside: true, error });
}

export function unreachableError(reason: string, error: unknown): RelayError {
  return new RelayError("DESTINATION_UNREACHABLE", `${reason}.`, { cause: error });
}

const CONNECTION_LOST = /^(?:ECONNRESET|ECONNABORTED|EPIPE|ERR_STREAM_(?:WRITE_AFTER_END|DESTROYED|PREMATURE_CLOSE))$/;

function meaningOf(
  code: string,
  { address, identity, serverName, trust }: ConnectionSettings,
): readonly [string, string?] | null {
  if (code === "ECONNREFUSED") return ["connection refused", `nothing listens there, check ${address}`];
  if (code === "ENOTFOUND" || code === "EAI_AGAIN") return ["the host name is unknown", `check ${address}`];
  if (code === "EHOSTUNREACH" || code === "ENETUNREACH") return ["no route to the host", `check ${address}`];
  if (code === "ETIMEDOUT" || code === "UND_ERR_CONNECT_TIMEOUT")
    return ["no answer in time", `check ${address} and the network`];
  if (CONNECTION_LOST.test(code)) return ["the server closed the connection, or was killed"];
  if (code === "CERT_HAS_EXPIRED") return ["its certificate has expired"];
  if (code === "ERR_TLS_CERT_ALTNAME_INVALID")
    return ["its certificate is for another host name", `check ${serverName ?? address}`];
  if (UNTRUSTED.test(code)) return ["its certificate is not signed by a trusted authority", `check ${trust}`];
  if (identity !== undefined && CERTIFICATE_ALERT.test(code))
    return ["the server refuses the client certificate, or misses one", `check ${identity}`];
  if (/^ERR_(?:SSL|OSSL)|^EPROTO$/.test(code))
    return ["TLS failed", "the port may not speak TLS, or wants a client certificate"];
  return null;
}

/** What a server answers to a client certificate that it does not accept. */
const CERTIFICATE_ALERT = /ALERT_(?:\w*CERTIFICATE\w*|UNKNOWN_CA|ACCESS_DENIED)$/;
const UNTRUSTED = /^(?:DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_(?:GET_ISSUER_CERT|VERIFY)\w*)$/;
