import { type ErrorCode, isRelayError, RelayError, reasonOf } from "../../core/errors.ts";

/** Answers of a server that did not run the command. */
const BY_PREFIX: Readonly<Record<string, ErrorCode>> = {
  LOADING: "DATABASE_BUSY",
  BUSY: "DATABASE_BUSY",
  TRYAGAIN: "DATABASE_BUSY",
  CLUSTERDOWN: "DATABASE_BUSY",
  MASTERDOWN: "DATABASE_BUSY",
  NOREPLICAS: "DATABASE_BUSY",
  NOPERM: "GRANT_MISSING",
};

/** The one place where errors of the client become errors of the relay. `broken` is what the connection said last. */
export function translateError(error: unknown, doing: string, broken?: Error): RelayError {
  if (isRelayError(error)) return error;
  const told = isAnswer(error) || broken === undefined ? error : broken;
  return new RelayError(codeOf(told), `${doing} failed: ${reasonOf(told, 500)}`, { cause: error });
}

export function isUnknownScript(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith("NOSCRIPT");
}

/**
 * A server that answers with an error in the middle of a script cannot do so after its first write. One that refuses the
 * password runs nothing at all.
 */
function codeOf(error: unknown): ErrorCode {
  if (!isAnswer(error)) return "DATABASE_UNREACHABLE";
  return BY_PREFIX[/^[A-Z]+/.exec(error.message)?.[0] ?? ""] ?? "DATABASE_REFUSED";
}

function isAnswer(error: unknown): error is Error {
  return error instanceof Error && error.name === "ReplyError";
}
