import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { suggestionsAt, withSuggestion } from "./filter-suggest.ts";
import { fieldValue, filterFault, quotedValue, typedWords, withField } from "./filter-text.ts";

const texts = (text: string, caret = text.length) => suggestionsAt(text, caret, {}).items.map((it) => it.text);

test("F3 a chip changes only its own term of a filter", () => {
  assert.equal(withField("", "state", "dead"), "state:dead");
  assert.equal(withField('key:"a b"  state:dead type:x', "state", "parked"), 'key:"a b" state:parked type:x');
  assert.equal(withField('key:"a b" state:dead', "state", null), 'key:"a b"');
  assert.equal(withField("state:a state:b", "state", "c"), "state:c");
  assert.equal(withField("word", "source", "my shop.outbox"), 'word source:"my shop.outbox"');
  assert.equal(fieldValue('"state:no" state:dead', "state"), "dead");
  assert.equal(fieldValue("order\\:42", "order"), null);
});

test("F3 every value in a filter is read back unchanged", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), fc.string({ unit: "binary" }), (value, before) => {
      assert.equal(fieldValue(`key:${quotedValue(value)}`, "key"), value);
      const words = typedWords(before);
      assert.ok(words.every(({ start, end }, at) => start < end && start >= (words[at - 1]?.end ?? 0)));
    }),
  );
});

test("F3 fields are suggested while they are typed, then their values, without fields that are already used", () => {
  assert.deepEqual(texts("st"), ["state:"]);
  assert.deepEqual(texts("state:dead s"), ["source:", "since:"]);
  assert.deepEqual(texts("state:de"), ["state:dead", "state:delivered", "state:discarded"]);
  assert.deepEqual(texts("header:a=b payload.a:1 p"), ["payload."]);
  assert.deepEqual(texts("key:4"), []);
  assert.deepEqual(texts("age:>1"), ["age:>1h", "age:>1d"]);
  const known = { source: ["shop.outbox", "my bill.outbox"] };
  assert.deepEqual(
    suggestionsAt("source:bill", 11, known).items.map((it) => it.text),
    ['source:"my bill.outbox"'],
  );
});

test("F3 a suggestion replaces its term, and the caret moves behind it", () => {
  const text = "sta key:42";
  const found = suggestionsAt(text, 3, {});
  assert.deepEqual(withSuggestion(text, found, found.items[0]!), ["state: key:42", 6]);
  const values = suggestionsAt("state:pa key:42", 8, {});
  assert.deepEqual(withSuggestion("state:pa key:42", values, values.items[0]!), ["state:parked key:42", 13]);
});

test("F3 the error of a filter is shown at its term", () => {
  const message =
    '"stat:dead" at character 7 of the filter: did you mean state:? [CONFIG_INVALID] Correct the setting.';
  assert.deepEqual(filterFault(message), { start: 6, end: 15, problem: "did you mean state:?" });
  assert.equal(filterFault("The database does not answer"), null);
});
