import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { jsonPieces } from "./json-text.ts";

const textOf = (json: string) =>
  jsonPieces(json)
    ?.map(({ text }) => text)
    .join("");

test("G4 big integers, repeated names and the order of names stay as they were written", () => {
  const json = '{"id":12345678901234567890,"b":1,"a":-0.10e+2,"b":[],"c":{}}';
  assert.equal(textOf(json), '{\n  "id": 12345678901234567890,\n  "b": 1,\n  "a": -0.10e+2,\n  "b": [],\n  "c": {}\n}');
});

test("G4 names, texts, numbers and words are told apart", () => {
  const kinds = jsonPieces('{"a":["x",1,true,null]}')?.filter(({ kind }) => kind !== "mark" && kind !== "space");
  assert.deepEqual(
    kinds?.map(({ kind, text }) => `${kind} ${text}`),
    ['name "a"', 'text "x"', "number 1", "word true", "word null"],
  );
});

test("G4 what is no JSON is left alone", () => {
  for (const text of ["", "  ", "hello", "{", "[1", '{"a":1]', '"open', "<b>", "\0"])
    assert.equal(jsonPieces(text), null);
});

test("G4 every JSON text means the same when it is set in lines", () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 4 }), (value) => {
      const json = JSON.stringify(value);
      assert.equal(JSON.stringify(JSON.parse(textOf(json) ?? "")), JSON.stringify(JSON.parse(json)));
    }),
  );
});
