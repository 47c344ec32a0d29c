import { isRelayError, RelayError, reasonOf } from "../../core/errors.ts";
import type { KurrentDbAddress } from "./kurrentdb-address.ts";

/** The client's errors have a word for each kind, those that come from its connection the code of gRPC. */
interface ClientError {
  readonly type?: unknown;
  readonly code?: unknown;
}

/** Says that the position to begin at is no place of this log. */
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
  "wrong-expected-version": "its last revision is another one",
  "stream-deleted": "the stream was deleted for good",
  "stream-tombstoned": "the stream was deleted for good",
  "access-denied": "access denied",
};

/** Some errors come with nothing but the name of their class. */
const NAMELESS = /^\w*Error$/;

/** The one place in which the client's errors become ours. What is not known to have failed is LOG_UNREACHABLE. */
export function logError(address: KurrentDbAddress, doing: string, error: unknown): RelayError {
  if (isRelayError(error)) return error;
  const { type, code } = (error ?? {}) as ClientError;
  const kind = typeof type === "string" ? type : "";
  const said = reasonOf(error);
  const text = safe(address, REASONS[kind] ?? (said === "" || NAMELESS.test(said) ? kind || "no answer" : said));
  const what = `${doing} at ${address.shown}: ${text}.`;
  // What quotes a secret is no cause either.
  const options = safe(address, said) === said ? { cause: error } : {};
  if (Object.hasOwn(CODES, kind)) return new RelayError(CODES[kind as keyof typeof CODES], what, options);
  if (code === INVALID_ARGUMENT && INVALID_POSITION.test(text)) return new RelayError("LOG_LOST", what, options);
  return new RelayError("LOG_UNREACHABLE", what, options);
}

/** The server is away, or does not answer. */
export function isTransient(error: unknown): boolean {
  const { type, code } = (error ?? {}) as ClientError;
  return type === "unavailable" || type === "deadline-exceeded" || type === "cancelled" || code === UNAVAILABLE;
}

/** Definite answers. */
export function isKnownKind(error: unknown): boolean {
  const { type } = (error ?? {}) as ClientError;
  return isRelayError(error) || (typeof type === "string" && type !== "unknown" && type !== "access-denied");
}

export function isMissingStream(error: unknown): boolean {
  const { type } = (error ?? {}) as ClientError;
  return type === "stream-not-found" || type === "stream-deleted" || type === "stream-tombstoned";
}

function safe({ secrets }: KurrentDbAddress, text: string): string {
  return secrets.reduce((cleaned, secret) => cleaned.replaceAll(secret, "***"), text);
}
