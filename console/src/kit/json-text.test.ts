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

test("G4 names, texts, numbers and words are distinguished", () => {
  const kinds = jsonPieces('{"a":["x",1,true,null]}')?.filter(({ kind }) => kind !== "mark" && kind !== "space");
  assert.deepEqual(
    kinds?.map(({ kind, text }) => `${kind} ${text}`),
    ['name "a"', 'text "x"', "number 1", "word true", "word null"],
  );
});

test("G4 text that is not JSON is left unchanged", () => {
  for (const text of ["", "  ", "hello", "{", "[1", '{"a":1]', '"open', "<b>", "\0"])
    assert.equal(jsonPieces(text), null);
});

test("G4 formatting never changes the meaning of JSON", () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 4 }), (value) => {
      const json = JSON.stringify(value);
      assert.equal(JSON.stringify(JSON.parse(textOf(json) ?? "")), JSON.stringify(JSON.parse(json)));
    }),
  );
});

test("H1 nested and long JSON is formatted within bounds and without loss", () => {
  const deep = `${"[".repeat(5_000)}${"]".repeat(5_000)}`;
  const set = textOf(deep) ?? "";
  assert.ok(set.length < 20_000, `${set.length} characters of ${deep.length}`);
  assert.equal(set.replaceAll(/\s/g, ""), deep);
  const long = `[${"1,".repeat(140_000)}1]`;
  const pieces = jsonPieces(long) ?? [];
  assert.ok(pieces.length < 10_010, `${pieces.length} pieces`);
  assert.equal(textOf(long)?.replaceAll(/\s/g, ""), long);
  assert.equal(jsonPieces(`${long}]`), null, "the end is checked, though it is not formatted");
  assert.equal(jsonPieces(`"${"a\\n".repeat(1_000_000)}"`)?.length, 1);
});
