import assert from "node:assert/strict";
import { test } from "node:test";
import { HeadersError, readHeaders } from "./headers.ts";

test("B6 headers become text: strings as they are, the rest as written", () => {
  const text = '{"s":"a\\"b","n":1.10,"long":12345678901234567890,"b":true,"o":{"x":[1]},"none":null}';
  const headers = { s: 'a"b', n: "1.10", long: "12345678901234567890", b: "true", o: '{"x":[1]}' };
  assert.deepEqual(readHeaders(text, 10), headers);
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
    "[1]": /no JSON object/,
    "5": /no JSON object/,
    "{": /no JSON/,
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
