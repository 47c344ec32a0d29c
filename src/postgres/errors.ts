import { type ErrorCode, isRelayError, RelayError, reasonOf } from "../core/errors.ts";

/** What the relay was doing, so that a message can contain more than the driver knows. */
export interface ErrorContext {
  /** "settling", "reading the lanes". */
  readonly doing: string;
  /** The table of events concerned, if any, as people write it. */
  readonly table?: string | undefined;
  readonly role?: string | undefined;
  /** The relay's own schema: a missing table in it is a different error than a missing table of events. */
  readonly relaySchema?: string | undefined;
  /** Set during a COMMIT: then a failure does not prove that nothing took effect. */
  readonly committing?: boolean | undefined;
}

/**
 * The server confirms that it rolled everything back: deadlock, serialization failure, lock timeout, cancelled
 * statement.
 */
const ROLLED_BACK = new Set(["40001", "40P01", "55P03", "57014"]);

/** Connection lost, shutdown, starting up, too many connections, idle in transaction for too long. */
const UNREACHABLE = /^(08...|57P0[1-5]|53300|25P03|25P04)$/;

const BY_STATE: Readonly<Record<string, ErrorCode>> = {
  "42P01": "TABLE_MISSING",
  "3F000": "TABLE_MISSING",
  "42501": "GRANT_MISSING",
  "42703": "COLUMN_MISSING",
  "42804": "COLUMN_MISTYPED",
  "22P02": "COLUMN_MISTYPED",
  "42883": "COLUMN_MISTYPED",
};

const SOCKET_ERRORS = new Set([
  "ECONNREFUSED",
  "ECONNRESET",
  "ECONNABORTED",
  "EPIPE",
  "ETIMEDOUT",
  "EHOSTUNREACH",
  "EHOSTDOWN",
  "ENETUNREACH",
  "ENETDOWN",
  "ENOTFOUND",
  "EAI_AGAIN",
  "ENOENT",
]);

/** Messages of the driver that have no code. */
const CONNECTION_LOST =
  /connection terminated|connection ended|not queryable|client was closed|client has encountered a connection error|query read timeout|pool after calling end|accepts writes|socket/i;
const POOL_EXHAUSTED = /timeout exceeded when trying to connect/i;

/** The one place where driver errors become errors of the relay. */
export function translateError(error: unknown, context: ErrorContext): RelayError {
  if (isRelayError(error)) return error;
  const code = codeOf(error, context);
  return new RelayError(code, describe(error, code, context), { cause: error });
}

/**
 * True when the connection survived: the server's error ended the statement, not the session. By the code alone, since
 * the severity is localized. After a rare code that ended the session all the same, the next statement fails.
 */
export function isStatementError(error: unknown): boolean {
  const state = sqlStateOf(error);
  return state !== undefined && !UNREACHABLE.test(state);
}

/** States of errors that the content of a row causes: its data, a constraint, a trigger or a function that raises. */
const ROW_STATES = /^(?:09|22|23|27|38|39|44|P0)/;

/** True when a statement failed because of one of its rows: without that row it may succeed. */
export function isRowError(error: unknown): boolean {
  const state = sqlStateOf(error) ?? "";
  // An error with a position in the statement is a fault of the statement, for whatever rows.
  if (textField(error, "position") !== undefined) return false;
  // The check of a policy fails with the state of a missing grant. The routine tells them apart in every language.
  return ROW_STATES.test(state) || (state === "42501" && textField(error, "routine") === "ExecWithCheckOptions");
}

/** The server accepts no writes: it is a standby, or became one during the connection. */
export function isDemoted(error: unknown): boolean {
  return sqlStateOf(error) === "25006";
}

function codeOf(error: unknown, context: ErrorContext): ErrorCode {
  const message = reasonOf(error);
  const state = sqlStateOf(error);
  const isAboutFunction = textField(error, "routine") === "ParseFuncOrColumn";
  if (state !== undefined) return codeOfState(state, message, context, isAboutFunction);
  // Nothing was sent yet: all connections of this process are in use.
  if (POOL_EXHAUSTED.test(message)) return "DATABASE_BUSY";
  const socketError = textField(error, "code");
  if (socketError !== undefined && SOCKET_ERRORS.has(socketError)) return "DATABASE_UNREACHABLE";
  if (CONNECTION_LOST.test(message)) return "DATABASE_UNREACHABLE";
  if (error instanceof AggregateError) return "DATABASE_UNREACHABLE";
  return "DATABASE_REFUSED";
}

function codeOfState(state: string, message: string, context: ErrorContext, isAboutFunction: boolean): ErrorCode {
  if (ROLLED_BACK.has(state)) return context.committing ? "DATABASE_UNREACHABLE" : "DATABASE_BUSY";
  if (UNREACHABLE.test(state)) return "DATABASE_UNREACHABLE";
  const code = BY_STATE[state] ?? "DATABASE_REFUSED";
  // Without a table of events, the statement is about the relay's own tables. Functions are always the relay's own
  // choice.
  if (code === "COLUMN_MISTYPED" && (context.table === undefined || isAboutFunction)) return "DATABASE_REFUSED";
  if (code === "TABLE_MISSING" && isAboutRelaySchema(message, state, context)) return "SCHEMA_MISSING";
  return code;
}

function isAboutRelaySchema(message: string, state: string, { relaySchema }: ErrorContext): boolean {
  if (relaySchema === undefined) return false;
  return message.includes(state === "3F000" ? relaySchema : `${relaySchema}.`);
}

function describe(error: unknown, code: ErrorCode, context: ErrorContext): string {
  const parts = [`${context.doing} failed: ${refusalOf(error) ?? reasonOf(error, 500)}`];
  if (context.committing) parts.push("(during the commit: whether it took effect is unknown)");
  if (context.table !== undefined) parts.push(`(table ${context.table})`);
  const column = textField(error, "column");
  if (column !== undefined) parts.push(`(column ${column})`);
  if (context.role !== undefined && (code === "GRANT_MISSING" || code === "DATABASE_REFUSED")) {
    parts.push(`(role ${context.role})`);
  }
  const state = sqlStateOf(error);
  if (state !== undefined) parts.push(`(SQLSTATE ${state})`);
  return parts.join(" ");
}

/**
 * Recognizes that nothing listens at the address, which no login and no password can change; null for every other
 * error.
 */
function refusalOf(error: unknown): string | null {
  const each: readonly unknown[] = error instanceof AggregateError ? error.errors : [error];
  const places = each.map((it) => /^connect ECONNREFUSED (\S+)$/.exec(reasonOf(it))?.[1]);
  if (places.length === 0 || places.includes(undefined)) return null;
  return `nothing listens at ${places.join(" or ")} (ECONNREFUSED)`;
}

/** What the server's codes mean, in our words. The first that fits. */
const STATE_TEXTS: readonly (readonly [states: RegExp, text: string])[] = [
  [/^(08|57P|25P0[34])/, "the server ended the connection"],
  [/^22/, "a value has the wrong form for its column"],
  [/^23/, "a constraint of the table refused the row"],
  [/^25006/, "the server accepts no writes"],
  [/^28/, "the server refused the login"],
  [/^3D/, "the database does not exist"],
  [/^(3F000|42P01)/, "a table or its schema does not exist"],
  [/^40/, "other transactions held the rows"],
  [/^55P03/, "another transaction held a lock on the table or its rows"],
  [/^42501/, "the role lacks a right"],
  [/^42703/, "a column does not exist"],
  [/^42/, "the statement does not fit the table"],
  [/^53100/, "the disk is full"],
  [/^53/, "the server lacks memory or connections"],
  [/^57014/, "it was cancelled or took too long"],
  [/^P0/, "a trigger or function refused it"],
];

/**
 * The same reason without the server's own text, for places that everyone can read. That text quotes values of rows, in
 * the server's language, and a trigger can raise any text with any code: so only the code is used. What follows the
 * last code is ours again.
 */
export function withoutServerText(reason: string): string {
  const [, doing, state = "", rest] = /^(.*?) failed: .*\(SQLSTATE ([0-9A-Z]{5})\)(.*)$/s.exec(reason) ?? [];
  if (doing === undefined) return reason;
  const text = STATE_TEXTS.find(([states]) => states.test(state))?.[1] ?? "the server refused it";
  return `${doing} failed: ${text}, see the log of the relay (SQLSTATE ${state})${rest}`;
}

/** The server's SQLSTATE; undefined for errors of the driver or the network. */
export function sqlStateOf(error: unknown): string | undefined {
  const code = textField(error, "code");
  // Socket errors have other lengths; a server's error always has a severity.
  return code !== undefined && /^[0-9A-Z]{5}$/.test(code) && textField(error, "severity") !== undefined
    ? code
    : undefined;
}

function textField(error: unknown, name: string): string | undefined {
  if (typeof error !== "object" || error === null) return undefined;
  const value: unknown = Reflect.get(error, name);
  return typeof value === "string" ? value : undefined;
}
