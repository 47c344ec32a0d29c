import assert from "node:assert/strict";
import { test } from "node:test";
import { patched, readPatch } from "./merge-patch.ts";

const apply = (payload: string, patch: string) => {
  const result = patched(payload, readPatch(patch));
  return "text" in result ? result.text : result.problem;
};

test("F3 a patch sets, merges and removes fields, as in RFC 7396", () => {
  assert.equal(apply('{"a":"b"}', '{"a":"c"}'), '{"a":"c"}');
  assert.equal(apply('{"a":"b"}', '{"b":"c"}'), '{"a":"b","b":"c"}');
  assert.equal(apply('{"a":"b","b":"c"}', '{"a":null}'), '{"b":"c"}');
  assert.equal(apply('{"a":["b"]}', '{"a":"c"}'), '{"a":"c"}');
  assert.equal(apply('{"a":{"b":"c"}}', '{"a":{"b":"d","c":null}}'), '{"a":{"b":"d"}}');
  assert.equal(apply('{"a":[{"b":"c"}]}', '{"a":[1]}'), '{"a":[1]}');
  assert.equal(apply('{"e":null}', '{"a":1}'), '{"e":null,"a":1}');
  assert.equal(apply("{}", '{"a":{"bb":{"ccc":null}}}'), '{"a":{"bb":{}}}');
});

test("F3 numbers keep every digit, and no field name is special", () => {
  const payload = '{"amount":12345678901234567890.10,"list":[1.0,2e5],"__proto__":{"x":1},"s":"ä\\u0000"}';
  const now = '{"amount":12345678901234567890.10,"list":[1.0,2e5],"__proto__":{"x":1},"s":"ä\\u0000","id":0.10}';
  assert.equal(apply(payload, '{"id":0.10}'), now);
  assert.equal(apply("{}", '{"__proto__":{"polluted":true}}'), '{"__proto__":{"polluted":true}}');
  assert.equal(({} as { polluted?: boolean }).polluted, undefined);
});

test("F3 a payload that cannot be patched has a reason, and an invalid patch is refused", () => {
  assert.equal(apply("not json", '{"a":1}'), "its payload is not JSON");
  assert.equal(apply("[1]", '{"a":1}'), "its payload is not a JSON object");
  assert.equal(
    apply(`${'{"a":'.repeat(100_000)}1${"}".repeat(100_000)}`, '{"a":1}'),
    "its payload is nested too deeply",
  );
  for (const wrong of ["[]", "1", "null", "{}", "{", `{"a":${"[".repeat(200)}${"]".repeat(200)}}`]) {
    assert.throws(() => readPatch(wrong), /merge patch|JSON/, wrong);
  }
});
