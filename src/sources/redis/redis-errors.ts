import { type ErrorCode, isRelayError, RelayError, reasonOf } from "../../core/errors.ts";

/** Error replies of a server that did not run the command. */
const BY_PREFIX: Readonly<Record<string, ErrorCode>> = {
  LOADING: "DATABASE_BUSY",
  BUSY: "DATABASE_BUSY",
  TRYAGAIN: "DATABASE_BUSY",
  CLUSTERDOWN: "DATABASE_BUSY",
  MASTERDOWN: "DATABASE_BUSY",
  NOREPLICAS: "DATABASE_BUSY",
  NOPERM: "GRANT_MISSING",
};

/** The one place where client errors become errors of the relay. `broken` is the connection's last error. */
export function translateError(error: unknown, doing: string, broken?: Error): RelayError {
  if (isRelayError(error)) return error;
  const source = isAnswer(error) || broken === undefined ? error : broken;
  return new RelayError(codeOf(source), `${doing} failed: ${reasonOf(source, 500)}`, { cause: error });
}

/** The server does not know the script's digest: send the whole text. */
export function isUnknownScript(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith("NOSCRIPT");
}

/**
 * Which failures are certain. A server that replies with an error did not run the script's writes, since a script
 * cannot fail after its first write. A refused password runs nothing at all. Everything else may have taken effect.
 */
function codeOf(error: unknown): ErrorCode {
  if (!isAnswer(error)) return "DATABASE_UNREACHABLE";
  return BY_PREFIX[/^[A-Z]+/.exec(error.message)?.[0] ?? ""] ?? "DATABASE_REFUSED";
}

function isAnswer(error: unknown): error is Error {
  return error instanceof Error && error.name === "ReplyError";
}
