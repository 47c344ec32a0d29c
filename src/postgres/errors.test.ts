import assert from "node:assert/strict";
import { test } from "node:test";
import { type ErrorCode, RelayError } from "../core/errors.ts";
import { isRowError, isStatementError, translateError } from "./errors.ts";

const context = { doing: "settling", table: "app.outbox", role: "relay", relaySchema: "outbox_relay" };

function serverError(code: string, message = "no", fields: object = {}): Error {
  return Object.assign(new Error(message), { code, severity: "ERROR", ...fields });
}

function socketError(code: string): Error {
  return Object.assign(new Error(`connect ${code}`), { code, errno: -1 });
}

const BY_STATE: readonly (readonly [ErrorCode, readonly string[]])[] = [
  ["DATABASE_BUSY", ["40001", "40P01", "55P03", "57014"]],
  ["DATABASE_UNREACHABLE", ["08000", "08006", "57P01", "57P02", "57P03", "53300", "25P03"]],
  ["TABLE_MISSING", ["42P01", "3F000"]],
  ["GRANT_MISSING", ["42501"]],
  ["COLUMN_MISSING", ["42703"]],
  ["COLUMN_MISTYPED", ["42804", "22P02", "42883"]],
  ["DATABASE_REFUSED", ["28P01", "28000", "3D000", "23505", "53100", "25006", "XX000"]],
];

for (const [code, states] of BY_STATE) {
  test(`A7 ${states.join(", ")} mean ${code}`, () => {
    for (const state of states) assert.equal(translateError(serverError(state), context).code, code, state);
  });
}

test("H1 a type that does not fit blames a column of the user's only where a table of events is read or written", () => {
  for (const state of ["42804", "22P02", "42883"]) {
    assert.equal(translateError(serverError(state), { doing: "surveying the lanes" }).code, "DATABASE_REFUSED", state);
  }
  const noFunction = serverError("42883", "no function", { routine: "ParseFuncOrColumn" });
  assert.equal(translateError(noFunction, context).code, "DATABASE_REFUSED", "a function is the relay's choice");
});

test("H1 an error of a row is told from one of the statement, of the rights or of the server", () => {
  const policy = { routine: "ExecWithCheckOptions" };
  const ofRows = [serverError("P0001"), serverError("23514"), serverError("22P02"), serverError("42501", "no", policy)];
  for (const error of ofRows) assert.ok(isRowError(error), JSON.stringify(error));
  const literal = serverError("22P02", "invalid input value for enum", { position: "41" });
  const others = [literal, serverError("42501"), serverError("42703"), serverError("57014"), socketError("ECONNRESET")];
  for (const error of others) assert.ok(!isRowError(error), JSON.stringify(error));
});

test("an error during the commit never promises that nothing took effect", () => {
  for (const state of ["40001", "40P01", "55P03", "57014"]) {
    const error = translateError(serverError(state), { ...context, committing: true });
    assert.equal(error.code, "DATABASE_UNREACHABLE");
    assert.match(error.message, /unknown/);
  }
});

test("a lost or refused connection means DATABASE_UNREACHABLE", () => {
  const messages = [
    "Connection terminated unexpectedly",
    "Connection terminated due to connection timeout",
    "Query read timeout",
    "Client has encountered a connection error and is not queryable",
    "Cannot use a pool after calling end on the pool",
  ];
  const errors = [
    ...messages.map((message) => new Error(message)),
    socketError("ECONNREFUSED"),
    socketError("ECONNRESET"),
  ];
  for (const error of [...errors, new AggregateError([socketError("ECONNREFUSED")])]) {
    assert.equal(translateError(error, context).code, "DATABASE_UNREACHABLE", error.message);
  }
});

test("H13 that nothing listens is reported with the place, and nothing is said of a login", () => {
  const refused = (place: string) =>
    Object.assign(socketError("ECONNREFUSED"), { message: `connect ECONNREFUSED ${place}` });
  const both = new AggregateError([refused("::1:5432"), refused("127.0.0.1:5432")]);
  const { message } = translateError(both, context);
  assert.match(message, /nothing listens at ::1:5432 or 127\.0\.0\.1:5432 \(ECONNREFUSED\)/);
  assert.doesNotMatch(message, /password|user/);
});

test("waiting in vain for a free connection of one's own means DATABASE_BUSY", () => {
  const error = new Error("timeout exceeded when trying to connect");
  assert.equal(translateError(error, context).code, "DATABASE_BUSY");
});

test("a missing table of the relay's own schema means SCHEMA_MISSING", () => {
  const own = serverError("42P01", 'relation "outbox_relay.lanes" does not exist');
  assert.equal(translateError(own, context).code, "SCHEMA_MISSING");
  assert.equal(
    translateError(serverError("3F000", 'schema "outbox_relay" does not exist'), context).code,
    "SCHEMA_MISSING",
  );
  assert.equal(
    translateError(serverError("42P01", 'relation "app.outbox" does not exist'), context).code,
    "TABLE_MISSING",
  );
});

test("A7 the message names what was done, table, role, column and the server's words", () => {
  const { message } = translateError(serverError("42501", "permission denied for table outbox"), context);
  for (const part of ["settling", "app.outbox", "role relay", "permission denied", "42501"])
    assert.ok(message.includes(part));
  const column = translateError(serverError("23502", "null value", { column: "payload" }), context);
  assert.ok(column.message.includes("column payload"));
});

test("an error of the relay passes unchanged, and anything else thrown becomes one", () => {
  const fenced = new RelayError("FENCED", "gone");
  assert.equal(translateError(fenced, context), fenced);
  assert.equal(translateError("a string", context).code, "DATABASE_REFUSED");
  assert.equal(translateError(undefined, context).code, "DATABASE_REFUSED");
});

test("only an answer of the server that ends no session leaves the connection usable", () => {
  assert.equal(isStatementError(serverError("23505")), true);
  for (const severity of ["FATAL", "FATALE", "ВАЖНО", "FEHLER"]) {
    for (const ended of ["57P01", "08006", "25P03"]) {
      assert.equal(isStatementError(serverError(ended, "terminating", { severity })), false, severity);
    }
    assert.equal(isStatementError(serverError("XX000", "whatever it says", { severity })), true, severity);
  }
  assert.equal(isStatementError(socketError("EPIPE")), false);
  assert.equal(isStatementError(new Error("Query read timeout")), false);
});
