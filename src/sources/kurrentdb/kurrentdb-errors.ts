import { isRelayError, RelayError, reasonOf } from "../../core/errors.ts";
import type { KurrentDbAddress } from "./kurrentdb-address.ts";

/** Errors of the client have a type; errors of its connection have a gRPC code. */
interface ClientError {
  readonly type?: unknown;
  readonly code?: unknown;
}

/** The server's message when the start position does not exist in this log. */
const INVALID_POSITION = /invalid position/i;
const INVALID_ARGUMENT = 3;
const UNAVAILABLE = 14;
const CODES = {
  "wrong-expected-version": "WRONG_REVISION",
  "stream-deleted": "EVENT_INVALID",
  "stream-tombstoned": "EVENT_INVALID",
  "maximum-append-size-exceeded": "EVENT_INVALID",
  "append-record-size-exceeded": "EVENT_INVALID",
} as const;

const REASONS: Readonly<Record<string, string>> = {
  "wrong-expected-version": "the stream has another last revision",
  "stream-deleted": "the stream was deleted for good",
  "stream-tombstoned": "the stream was deleted for good",
  "access-denied": "access denied",
};

/** Some errors contain only the name of their class. */
const NAMELESS = /^\w*Error$/;

/**
 * The one place where client errors become errors of the relay. A failure with an unknown result is LOG_UNREACHABLE.
 */
export function logError(address: KurrentDbAddress, doing: string, error: unknown): RelayError {
  if (isRelayError(error)) return error;
  const { type, code } = (error ?? {}) as ClientError;
  const kind = typeof type === "string" ? type : "";
  const said = reasonOf(error);
  const text = safe(address, REASONS[kind] ?? (said === "" || NAMELESS.test(said) ? kind || "no response" : said));
  const what = `${doing} at ${address.shown}: ${text}.`;
  // An error that quotes a secret must not become a cause either: causes are logged.
  const options = safe(address, said) === said ? { cause: error } : {};
  if (Object.hasOwn(CODES, kind)) return new RelayError(CODES[kind as keyof typeof CODES], what, options);
  if (code === INVALID_ARGUMENT && INVALID_POSITION.test(text)) return new RelayError("LOG_LOST", what, options);
  return new RelayError("LOG_UNREACHABLE", what, options);
}

/** The server is down or does not respond. */
export function isTransient(error: unknown): boolean {
  const { type, code } = (error ?? {}) as ClientError;
  return type === "unavailable" || type === "deadline-exceeded" || type === "cancelled" || code === UNAVAILABLE;
}

/** The server gave a definite answer. */
export function isKnownKind(error: unknown): boolean {
  const { type } = (error ?? {}) as ClientError;
  return isRelayError(error) || (typeof type === "string" && type !== "unknown" && type !== "access-denied");
}

/** The stream does not exist, or no longer. */
export function isMissingStream(error: unknown): boolean {
  const { type } = (error ?? {}) as ClientError;
  return type === "stream-not-found" || type === "stream-deleted" || type === "stream-tombstoned";
}

function safe({ secrets }: KurrentDbAddress, text: string): string {
  return secrets.reduce((cleaned, secret) => cleaned.replaceAll(secret, "***"), text);
}
