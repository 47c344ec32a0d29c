import assert from "node:assert/strict";
import { test } from "node:test";
import { HeadersError, readHeaders } from "./headers.ts";

test("B6 text stays as it is, whatever the name of the header", () => {
  const text = '{"a": "é \\u0001", "__proto__": "p", "": "empty"}';
  assert.deepEqual(Object.entries(readHeaders(text, 10)), Object.entries(JSON.parse(text)));
});

test("B6 a value that is no string becomes its JSON text, numbers with all of their digits", () => {
  const text = `{"long": 12345678901234567890.10, "yes": true, "none": null, "deep": {"n": 1.50, "s": ["x", null]},
    "__proto__": 7, "text": "1"}`;
  assert.deepEqual(Object.entries(readHeaders(text, 10)), [
    ["long", "12345678901234567890.10"],
    ["yes", "true"],
    ["none", "null"],
    ["deep", '{"n":1.50,"s":["x",null]}'],
    ["__proto__", "7"],
    ["text", "1"],
  ]);
});

test("B5 null means that there are none", () => {
  assert.deepEqual(readHeaders("null", 10), {});
});

test("what is no object, too many or too large is refused with the reason", () => {
  for (const text of ["[]", '"x"', "1", '["a"]']) assert.throws(() => readHeaders(text, 10), HeadersError);
  assert.throws(() => readHeaders('{"a": "1", "b": "2"}', 1), /there are 2 headers, more than the 1/);
  assert.throws(() => readHeaders("!300000", 10), /the headers have 300000 bytes/);
});
