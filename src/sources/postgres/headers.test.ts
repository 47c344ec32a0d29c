import assert from "node:assert/strict";
import { test } from "node:test";
import { HeadersError, readHeaders } from "./headers.ts";

test("B6 headers become text: strings as they are, the rest as written", () => {
  const text = '{"s":"a\\"b","n":1.10,"long":12345678901234567890,"b":true,"o":{"x":[1]},"none":null}';
  const headers = { s: 'a"b', n: "1.10", long: "12345678901234567890", b: "true", o: '{"x":[1]}' };
  assert.deepEqual(readHeaders(text, 10), headers);
});

test("B6 text stays as it is, whatever the name of the header", () => {
  const text = '{"a": "é \\u0001", "__proto__": "p", "": "empty"}';
  assert.deepEqual(Object.entries(readHeaders(text, 10)), Object.entries(JSON.parse(text)));
});

test("B6 in an Open Outbox table null becomes a text too, and a number within an object keeps all of its digits", () => {
  const text = `{"long": 12345678901234567890.10, "yes": true, "none": null, "deep": {"n": 1.50, "s": ["x", null]},
    "__proto__": 7, "text": "1"}`;
  assert.deepEqual(Object.entries(readHeaders(text, 10, "text")), [
    ["long", "12345678901234567890.10"],
    ["yes", "true"],
    ["none", "null"],
    ["deep", '{"n":1.50,"s":["x",null]}'],
    ["__proto__", "7"],
    ["text", "1"],
  ]);
});

test("no headers and JSON null are no headers", () => {
  assert.deepEqual(readHeaders("{}", 10), {});
  assert.deepEqual(readHeaders("null", 10), {});
});

test("a header that is called like an inner property of objects is a header", () => {
  const headers = readHeaders('{"__proto__":"p","constructor":"c"}', 10);
  assert.deepEqual(Object.entries(headers), [
    ["__proto__", "p"],
    ["constructor", "c"],
  ]);
});

test("what is no object, no JSON, too long or too many is refused with its reason", () => {
  const many = JSON.stringify(Object.fromEntries(Array.from({ length: 10_000 }, (_, index) => [`h${index}`, "v"])));
  const cases = {
    "[1]": /not a JSON object/,
    "5": /not a JSON object/,
    "{": /not valid JSON/,
    "!300000": /300000 bytes/,
    [many]: /10000 headers/,
  };
  for (const [text, reason] of Object.entries(cases)) {
    assert.throws(
      () => readHeaders(text, 1_000),
      (error) => error instanceof HeadersError && reason.test(error.message),
    );
  }
});
