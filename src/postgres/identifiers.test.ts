import assert from "node:assert/strict";
import { test } from "node:test";
import { isRelayError } from "../core/errors.ts";
import { parseTableName, quoteArray, quoteIdentifier, quoteLiteral } from "./identifiers.ts";

const isInvalid = (error: unknown) => isRelayError(error, "CONFIG_INVALID");

test("any name becomes one identifier", () => {
  assert.equal(quoteIdentifier("outbox"), '"outbox"');
  assert.equal(quoteIdentifier('we"ird; drop table x; --'), '"we""ird; drop table x; --"');
  assert.equal(quoteIdentifier("MixedCase"), '"MixedCase"');
});

test("a name that PostgreSQL would refuse or cut off is refused", () => {
  for (const name of ["", "a\0b", "x".repeat(64), "é".repeat(32)])
    assert.throws(() => quoteIdentifier(name), isInvalid);
  assert.equal(quoteIdentifier("x".repeat(63)).length, 65);
});

test("any text becomes one literal", () => {
  assert.equal(quoteLiteral("it's"), "'it''s'");
  assert.equal(quoteLiteral("back\\slash'"), "E'back\\\\slash'''");
  assert.throws(() => quoteLiteral("zero\0"), isInvalid);
});

test("a list becomes one array literal, with escapes only where they are needed", () => {
  assert.equal(quoteArray([]), "'{}'");
  assert.equal(quoteArray(["a", "b c", "", "null"]), `'{"a","b c","","null"}'`);
  assert.equal(quoteArray(['q"q', "b\\s", "it's"]), `E'{"q\\\\"q","b\\\\\\\\s","it''s"}'`);
});

test("a table is named with or without schema and quotes", () => {
  assert.deepEqual(parseTableName("orders.outbox"), { schema: "orders", table: "outbox" });
  assert.deepEqual(parseTableName("outbox"), { schema: "public", table: "outbox" });
  assert.deepEqual(parseTableName('"we.ird"."o""utbox"'), { schema: "we.ird", table: 'o"utbox' });
  assert.deepEqual(parseTableName("Mixed.Case"), { schema: "Mixed", table: "Case" });
});

test("what is no table's name is refused", () => {
  for (const text of ["", ".", "a.", ".b", "a.b.c", '"a', 'a"b.c', '""."b"']) {
    assert.throws(() => parseTableName(text), isInvalid, text);
  }
});
